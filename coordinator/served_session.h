// A complete session: its workers, its calls in the order of their ordinals, and the results that are still repeated to
// whoever missed them.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <variant>
#include <vector>

#include "coordinator/load_attempt.h"
#include "coordinator/save_attempt.h"

namespace vckpt::coordinator {

constexpr std::uint64_t calls_in_flight_max = 8;
constexpr std::size_t results_kept_max = 64;

class ServedSession {
 public:
  explicit ServedSession(Roster roster) : roster_(std::move(roster)) {}

  Roster& roster() { return roster_; }
  const Roster& roster() const { return roster_; }
  std::optional<CheckpointId>& line() { return line_; }

  // From a member. False: the message has no place here and is dropped.
  bool on_message(CallContext& context, Rank rank, const Envelope& envelope, const Message& message);
  // An answer to some call's effect.
  template <typename Answer>
  void on_answer(CallContext& context, const Answer& answer);
  void advance(CallContext& context);
  void tick(CallContext& context);

  // New calls are answered with this from now on.
  void refuse(Error error) { refusal_ = std::move(error); }
  // Gives up all calls whose COMMIT does not stand yet.
  void fail_all(CallContext& context, const Error& error);
  // The coordinator ends: tells whoever waits for a call that is surely not committed by us.
  void abandon(CallContext& context, const Error& error);

  bool idle() const { return calls_.empty(); }
  // Aborted attempts whose data may go.
  std::vector<CheckpointId> take_removals() { return std::exchange(removals_, {}); }

 private:
  using Call = std::variant<SaveAttempt, LoadAttempt>;
  struct Ended {
    Message result;
    Attempt attempt;
  };

  template <typename Attempt, typename CallMessage>
  bool on_call(CallContext& context, Rank rank, const CallMessage& call);
  template <typename Attempt, typename ReceiptMessage>
  Attempt* open_call(CallContext& context, Rank rank, const ReceiptMessage& receipt);
  bool on_failed(CallContext& context, Rank rank, const Failed& failed);
  bool answer_ended(CallContext& context, Rank rank, Ordinal ordinal);
  void on_progress(CallContext& context, Rank rank, const Progress& progress);
  void settle();

  Roster roster_;
  std::optional<CheckpointId> line_;
  std::map<Ordinal, Call> calls_;   // those that have not ended
  std::map<Ordinal, Ended> ended_;  // those that have
  Ordinal first_open_{1};           // all before have ended
  std::optional<Error> refusal_;
  std::vector<CheckpointId> removals_;
};

template <typename Answer>
void ServedSession::on_answer(CallContext& context, const Answer& answer) {
  for (auto& [ordinal, call] : calls_) {
    std::visit(
        [&](auto& attempt) {
          if constexpr (requires { attempt.on_event(context, answer); }) attempt.on_event(context, answer);
        },
        call);
  }
}

}  // namespace vckpt::coordinator
