// A worker's membership in a session: finding the run, joining, hearing and being heard, and the end of it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/time_point.h"
#include "schema/message.h"
#include "schema/result.h"
#include "worker/worker_events.h"

namespace vckpt {

struct WorkerSettings {
  Rank rank;
  std::uint32_t world_size = 1;
  Incarnation incarnation;
  std::string host;
  std::uint64_t process = 0;
  std::string session_name;
  std::string root;         // for messages
  std::string coordinator;  // for messages
  std::string transport_address;
  std::uint64_t staging_bytes = 0;
  Duration deadline = std::chrono::seconds(120);
  Duration resend = std::chrono::seconds(1);
};

enum class Life : std::uint8_t { starting, finding, joining, joined, lost, left };

class Membership {
 public:
  explicit Membership(WorkerSettings settings);

  Life life() const { return life_; }
  // Why it is lost or left.
  const std::optional<Error>& error() const { return error_; }
  const WorkerSettings& settings() const { return settings_; }
  Duration deadline() const { return deadline_; }
  std::uint64_t dropped() const { return dropped_; }
  // `rank 3 (host)`.
  std::string self() const;

  void start(TimePoint now);
  void run_record_read(const Result<RunRecord>& record, TimePoint now);
  // Whether a message is for this incarnation and of its session; counts those that are not.
  bool accepts(const EnvelopedMessage& message, TimePoint now);
  void drop() { ++dropped_; }
  void joined(const Joined& joined, const Envelope& envelope, TimePoint now);
  void lose(Error error);
  void leave(Error error);

  // A message of ours in its envelope.
  EnvelopedMessage stamp(Message message, const std::optional<CheckpointId>& attempt, Revision revision);

  // What time alone brings: requests to send again, a pulse, or the end.
  std::vector<WorkerEffect> tick(TimePoint now);
  // Once per pulse.
  bool take_pulse();
  std::optional<TimePoint> next_wake() const;

 private:
  void enter(Life next, TimePoint now);
  void tick_connect(TimePoint now, std::vector<WorkerEffect>& effects);
  void fail_connect(Error error, std::vector<WorkerEffect>& effects);
  std::string coordinator() const;

  WorkerSettings settings_;
  Life life_ = Life::starting;
  std::optional<Error> error_;
  Nonce run_;
  Epoch epoch_;
  Session session_;
  std::uint64_t sequence_ = 0;
  std::uint64_t dropped_ = 0;
  Duration deadline_;
  Duration pulse_ = std::chrono::seconds(1);
  TimePoint since_;  // of this stage of life
  TimePoint heard_at_;
  TimePoint next_send_;  // of this stage's request, or of the pulse
  bool pulse_due_ = false;
  Error last_run_error_;
};

// `2.5 s`.
std::string in_seconds(Duration duration);

}  // namespace vckpt
