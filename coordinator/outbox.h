// Collects the effects of one event, and numbers what leaves: tickets of operations, sequences of messages.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "coordinator/event.h"
#include "coordinator/roster.h"

namespace vckpt::coordinator {

class Outbox {
 public:
  void begin(Nonce run, Epoch epoch) {
    run_ = run;
    epoch_ = epoch;
  }
  Nonce run() const { return run_; }
  Epoch epoch() const { return epoch_; }

  Ticket ticket() { return Ticket{++tickets_}; }
  void push(Effect effect) { effects_.push_back(std::move(effect)); }
  void log(std::string line) { push(Log{std::move(line)}); }

  // To a worker that is no member (yet).
  void answer(const std::string& peer, Rank rank, Incarnation incarnation, Message message) {
    send(peer, Session{}, rank, incarnation, Attempt{}, std::move(message));
  }
  // To a member; nothing to one that has left.
  void send(const Roster& roster, Rank rank, Attempt attempt, Message message) {
    const auto& member = roster.members[rank.value];
    if (!member.left) send(member.peer, roster.session, rank, member.incarnation, attempt, std::move(message));
  }

  std::vector<Effect> take() { return std::exchange(effects_, {}); }

 private:
  void send(const std::string& peer, Session session, Rank rank, Incarnation incarnation, Attempt attempt,
            Message message) {
    Envelope envelope{run_, epoch_, session, rank, incarnation, attempt, Revision{}, ++sequence_};
    push(Send{peer, EnvelopedMessage{envelope, std::move(message)}});
  }

  Nonce run_;
  Epoch epoch_;
  std::uint64_t tickets_ = 0;
  std::uint64_t sequence_ = 0;
  std::vector<Effect> effects_;
};

}  // namespace vckpt::coordinator
