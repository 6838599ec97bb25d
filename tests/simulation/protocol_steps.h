// The steps that each part of the model may take from one state: inside of append_next().
#pragma once

#include <cstdint>
#include <vector>

#include "tests/simulation/protocol_model.h"

namespace vckpt::model {

inline bool older(const AttemptState& a, const AttemptState& b) {
  return a.epoch != b.epoch ? a.epoch < b.epoch : a.number < b.number;
}
inline bool committed(const AttemptState& attempt) { return attempt.record == Record::commit; }
inline bool decided(const AttemptState& attempt) { return attempt.record != Record::absent; }
inline bool retired(const AttemptState& attempt) { return attempt.retirement != Seen::absent; }
// Training went to this commit: it continues from the last one that the job heard of, or from what it went back to.
bool leads_on(const State& state, std::uint8_t attempt);

class Steps {
 public:
  // All outlive it; `from` is not in `next`.
  Steps(const Bounds& bounds, Mutant mutant, const State& from, std::vector<Next>& next)
      : bounds_(bounds), mutant_(mutant), from_(from), next_(next) {}

  void all();

 private:
  // The state after one more step, to be changed at once: the next add() moves it.
  State& add(Action action, std::uint8_t who = none, std::uint8_t what = none) {
    return next_.emplace_back(Next{from_, action, who, what}).state;
  }
  bool is(Mutant mutant) const { return mutant_ == mutant; }
  const AttemptState& attempt(std::uint8_t a) const { return from_.attempts[a]; }
  std::uint8_t made() const;
  // `newest` by whoever looks now; none when nothing is committed.
  std::uint8_t newest() const;
  // Records that were read are durable before anybody acts on them.
  void sync_what_was_read(State& state) const;

  void coordinator(std::uint8_t c);
  bool highest(std::uint8_t c) const;
  bool called(std::uint8_t c) const;
  bool succeeded(std::uint8_t a) const;
  bool probe(Action action, std::uint8_t c, Phase phase);
  void list(std::uint8_t c);
  void take_up(std::uint8_t c);
  void serve(std::uint8_t c);
  void retire(std::uint8_t c, std::uint8_t a);
  void load(std::uint8_t c);
  void create(std::uint8_t c);
  void decide(std::uint8_t c);
  void link(std::uint8_t c);
  void sync_decision(std::uint8_t c);
  void go_on(std::uint8_t c);
  void collection(std::uint8_t c);

  void worker(std::uint8_t w);
  void write(std::uint8_t w, std::uint8_t c);
  void await_decision(std::uint8_t w);
  void offer(std::uint8_t w, std::uint8_t c);
  void trust(State& state, std::uint8_t w) const;

  void restart_job();
  void reader();
  void cut_power();

  const Bounds& bounds_;
  const Mutant mutant_;
  const State& from_;
  std::vector<Next>& next_;
};

// Decisions that are visible become durable.
void sync_decisions(State& state);
void remove_data(AttemptState& attempt);
// The attempt of this coordinator is to be aborted.
void give_up(State& state, std::uint8_t c);
void rest(CoordinatorState& coordinator);

}  // namespace vckpt::model
