#include "tests/simulation/protocol_model.h"

#include <algorithm>

#include "tests/simulation/protocol_steps.h"

namespace vckpt::model {
namespace {

bool whole(const AttemptState& attempt) {
  return !attempt.gone &&
         std::all_of(attempt.data.begin(), attempt.data.end(), [](Data d) { return d == Data::whole; });
}

std::string name(const AttemptState& attempt) {
  return "e" + std::to_string(attempt.epoch) + "-a" + std::to_string(attempt.number) + "-s" +
         std::to_string(attempt.step);
}

// There is a newer commit, durably.
bool succeeded(const State& state, const AttemptState& attempt) {
  return std::any_of(state.attempts.begin(), state.attempts.end(), [&](const AttemptState& other) {
    return older(attempt, other) && committed(other) && other.seen == Seen::durable;
  });
}

bool descends(const State& state, std::uint8_t attempt, std::uint8_t ancestor) {
  while (attempt != none && attempt != ancestor) attempt = state.attempts[attempt].parent;
  return attempt == ancestor;
}

std::string broken_by(const State& state, std::size_t number) {
  const auto& attempt = state.attempts[number];
  if (committed(attempt) && !retired(attempt) && !whole(attempt)) return "a COMMIT without its data";
  if (attempt.gone && attempt.record != Record::abort && attempt.retirement != Seen::durable) {
    return "data was deleted of what is neither aborted nor retired";
  }
  if (attempt.gone && state.reading == Reading::confirmed && state.read == number) {
    return "data was deleted under the pin of a reader";
  }
  if (retired(attempt) && !succeeded(state, attempt)) return "retired without a newer commit";
  if (attempt.trusted && !committed(attempt) && !retired(attempt)) {
    return "what was acknowledged or loaded is no COMMIT";
  }
  return {};
}

}  // namespace

bool leads_on(const State& state, std::uint8_t attempt) {
  return descends(state, attempt, state.head) || (state.line != none && descends(state, attempt, state.line));
}

void sync_decisions(State& state) {
  for (auto& attempt : state.attempts) {
    if (!decided(attempt)) continue;
    attempt.seen = Seen::durable;
    attempt.settled = true;
  }
}

void remove_data(AttemptState& attempt) {
  attempt.gone = true;
  attempt.data.fill(Data::absent);
}

void Steps::all() {
  for (std::uint8_t c = 0; c < bounds_.coordinators; ++c) coordinator(c);
  for (std::uint8_t w = 0; w < workers_max; ++w) worker(w);
  restart_job();
  if (bounds_.reader) reader();
  if (from_.power_cuts < bounds_.power_cuts) cut_power();
}

std::uint8_t Steps::made() const {
  std::uint8_t count = 0;
  while (count < attempts_max && attempt(count).epoch != 0) ++count;
  return count;
}

std::uint8_t Steps::newest() const {
  const bool by_step = is(Mutant::takes_the_highest_step_for_newest);
  std::uint8_t found = none;
  for (std::uint8_t a = 0; a < made(); ++a) {
    if (!committed(attempt(a)) || retired(attempt(a))) continue;
    const bool later =
        found == none || (by_step ? attempt(found).step <= attempt(a).step : older(attempt(found), attempt(a)));
    if (later) found = a;
  }
  return found;
}

void Steps::sync_what_was_read(State& state) const {
  if (!is(Mutant::acts_on_unsynced_records)) sync_decisions(state);
}

void append_next(const Bounds& bounds, Mutant mutant, const State& state, std::vector<Next>& next) {
  Steps(bounds, mutant, state, next).all();
}

std::string broken_rule(const State& state) {
  if (state.decided_twice) return "an attempt was decided twice";
  if (state.loaded_undecided) return "what is not committed was loaded";
  if (state.missed_newest) return "what was taken for the newest is not where training went";
  bool any_trusted = false;
  bool any_loadable = false;
  for (std::size_t number = 0; number < attempts_max; ++number) {
    const auto& attempt = state.attempts[number];
    if (attempt.epoch == 0) break;
    if (auto broken = broken_by(state, number); !broken.empty()) return name(attempt) + ": " + broken;
    any_trusted |= attempt.trusted;
    any_loadable |= committed(attempt) && !retired(attempt) && whole(attempt);
  }
  if (any_trusted && !any_loadable) return "something was acknowledged and nothing can be loaded";
  return {};
}

std::string describe(const Next& next) {
  const auto head = "coordinator " + std::to_string(next.who + 1);
  const auto worker = "worker " + std::to_string(next.who);
  const auto it =
      next.action != Action::join && next.what < attempts_max ? name(next.state.attempts[next.what]) : std::string();
  const auto verdict = [&] {
    const bool commit = next.state.coordinators[next.who].verdict == Record::commit;
    return std::string(commit ? "COMMIT" : "ABORT");
  };
  switch (next.action) {
    case Action::claim: return head + " claims epoch " + std::to_string(next.who + 1);
    case Action::list: return head + " lists the root";
    case Action::take_up: return head + " takes up undecided " + it;
    case Action::remove_undecided: return head + " deletes the data of undecided " + it;
    case Action::find_highest: return head + " finds its epoch the highest";
    case Action::superseded: return head + " finds a higher epoch and ends";
    case Action::create: return head + " creates " + it;
    case Action::give_up_start: return head + " gives up a call before its attempt is made";
    case Action::decide: return head + " resolves to " + verdict() + " " + it;
    case Action::roll_forward: return head + " has all receipts of its predecessor's " + it + " and resolves to COMMIT";
    case Action::link: return head + " publishes " + verdict() + " of " + it + ", visible but not durable";
    case Action::taken: return head + " finds " + it + " decided";
    case Action::sync: return head + " syncs the decision of " + it;
    case Action::confirm: return head + " finds its epoch the highest after COMMIT of " + it;
    case Action::tell: return worker + " is told that " + it + " is committed";
    case Action::go_on: return head + " goes on";
    case Action::retire: return head + " publishes the retirement of " + it + ", visible but not durable";
    case Action::sync_retirement: return head + " syncs the retirement of " + it;
    case Action::look_at_pins: return head + " finds no pin on " + it;
    case Action::keep_pinned: return head + " keeps " + it + ", which is pinned";
    case Action::collect: return head + " deletes the data of retired " + it;
    case Action::remove_aborted: return head + " deletes the data of aborted " + it;
    case Action::load: return "the job loads " + it + " through " + head;
    case Action::load_nothing: return "the job begins from nothing through " + head;
    case Action::crash: return head + " crashes";
    case Action::lose_worker: return worker + " is lost";
    case Action::restart_job: return "the job is started again, with new workers";
    case Action::join: return worker + " joins coordinator " + std::to_string(next.what + 1);
    case Action::write: return worker + " writes its part of " + it;
    case Action::write_short: return worker + " writes less of its part of " + it + " than the plan has";
    case Action::offer: return worker + " sends its receipt of " + it;
    case Action::read_decision: return worker + " reads the decision of " + it;
    case Action::give_up_waiting: return worker + " gives up waiting for " + it;
    case Action::choose: return "a reader chooses " + it;
    case Action::pin: return "the reader pins " + it;
    case Action::read_again: return "the reader finds " + it + " still committed and reads it";
    case Action::stop_reading: return "the reader leaves " + it;
    case Action::cut_power: return "power is lost";
  }
  return {};
}

}  // namespace vckpt::model
