// The coordinator's logic: who is in the job, what is being saved and loaded, what is decided. Pure: it is told events
// and the time, and answers with effects; no I/O, log, clock or thread inside. Effects may be run in any order, answers
// may come in any order, but messages to one peer are sent in the order of their effects.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "coordinator/call_context.h"
#include "coordinator/event.h"
#include "coordinator/membership.h"
#include "coordinator/recovery.h"
#include "coordinator/removals.h"
#include "coordinator/served_session.h"

namespace vckpt::coordinator {

class Coordinator {
 public:
  explicit Coordinator(Settings settings) : settings_(std::move(settings)) {}

  // After Exit there are no more effects.
  std::vector<Effect> on(const Event& event, TimePoint now);

  // Messages that matched nothing that is alive here.
  std::uint64_t dropped_messages() const { return dropped_; }

  // The interval of heartbeats and ticks for so many ranks.
  static Duration pulse(const Settings& settings, std::uint32_t ranks);

 private:
  enum class Phase : std::uint8_t { idle, claiming, recovering, serving, over };

  void handle(CallContext& context, const Started& event);
  void handle(CallContext& context, const EpochClaimed& event);
  void handle(CallContext& context, const ClaimFailed& event);
  void handle(CallContext& context, const Received& event);
  void handle(CallContext& context, const LayoutBodyReceived& event);
  void handle(CallContext& context, const DataRemoved& event);
  void handle(CallContext& context, const TimerFired& event);
  void handle(CallContext& context, const StopAsked& event);
  template <typename Answer>
  void handle(CallContext& context, const Answer& answer);  // of a call's or the recovery's effect

  // Whoever sent this, if it is a member of the session that is served: it lives.
  Member* find_sender(CallContext& context, const std::string& peer, const Envelope& envelope);
  void on_join(CallContext& context, const Received& event, const Join& join);
  void on_probe(CallContext& context, const Received& event);
  void judge_members(CallContext& context);
  void activate(CallContext& context);
  void settle(CallContext& context);
  bool may_leave(const CallContext& context) const;
  void exit(CallContext& context, std::optional<Error> error);
  Message joined() const;

  Settings settings_;
  Phase phase_ = Phase::idle;
  Outbox out_;
  RunRecord run_;
  EpochRecord epoch_;
  std::optional<TimePoint> started_;
  std::optional<TimePoint> ticked_;
  Membership membership_;
  BodyTable bodies_;
  PlanCache plans_;
  Recovery recovery_;
  Removals removals_;
  std::uint64_t attempts_ = 0;
  std::uint64_t sessions_ = 0;
  std::optional<Roster> next_;  // complete, waits until the calls of the session before are decided
  std::optional<ServedSession> session_;
  std::optional<TimePoint> leave_by_;  // stopping
  std::uint64_t dropped_ = 0;
};

}  // namespace vckpt::coordinator
