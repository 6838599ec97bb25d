#include "tests/simulation/protocol_steps.h"

#include <algorithm>

namespace vckpt::model {
namespace {

void release(WorkerState& worker) {
  worker.attempt = none;
  worker.receipt = Data::absent;
}

}  // namespace

void Steps::worker(std::uint8_t w) {
  const auto& me = from_.workers[w];
  if (!me.lives) return;
  if (bounds_.worker_loss) add(Action::lose_worker, w).workers[w] = {.lives = false};
  for (std::uint8_t c = 0; c < bounds_.coordinators; ++c) {
    const auto phase = from_.coordinators[c].phase;
    const bool answers = phase >= Phase::idle && phase != Phase::dead;
    const bool later = me.epoch < c + 1 || (is(Mutant::accepts_stale_epochs) && me.epoch != c + 1);
    if (answers && later) add(Action::join, w, c).workers[w].epoch = static_cast<std::uint8_t>(c + 1);
  }
  if (me.attempt != none) {
    await_decision(w);
  } else if (me.epoch != 0) {
    write(w, static_cast<std::uint8_t>(me.epoch - 1));
  }
}

void Steps::write(std::uint8_t w, std::uint8_t c) {
  const auto& head = from_.coordinators[c];
  if (head.phase != Phase::gathering || attempt(head.attempt).epoch != c + 1) return;
  const auto& one = attempt(head.attempt);
  if (one.session != from_.session || one.data[w] != Data::absent || one.gone) return;
  for (const auto data : {Data::whole, Data::cut_short}) {
    if (data == Data::cut_short && from_.short_writes == bounds_.short_writes) continue;
    State& state = add(data == Data::whole ? Action::write : Action::write_short, w, head.attempt);
    state.attempts[head.attempt].data[w] = data;
    state.workers[w].attempt = head.attempt;
    state.workers[w].receipt = data;
    if (data == Data::cut_short) ++state.short_writes;
  }
}

// It was told, or read, that its attempt is committed.
void Steps::trust(State& state, std::uint8_t w) const {
  const auto a = from_.workers[w].attempt;
  state.attempts[a].trusted = true;
  state.line = state.head = a;
  release(state.workers[w]);
}

void Steps::await_decision(std::uint8_t w) {
  const auto& me = from_.workers[w];
  const auto& one = attempt(me.attempt);
  if (me.epoch != 0) {
    const auto c = static_cast<std::uint8_t>(me.epoch - 1);
    const auto& head = from_.coordinators[c];
    const bool tells =
        head.phase == Phase::confirmed ||
        (is(Mutant::acks_before_deciding) && head.phase == Phase::deciding && head.verdict == Record::commit);
    if (tells && head.attempt == me.attempt) trust(add(Action::tell, w, me.attempt), w);
    offer(w, c);
  }
  if (decided(one)) {
    State& state = add(Action::read_decision, w, me.attempt);
    sync_what_was_read(state);
    committed(one) ? trust(state, w) : release(state.workers[w]);
  } else if (bounds_.impatience) {
    release(add(Action::give_up_waiting, w, me.attempt).workers[w]);
  }
}

// Its receipt, to the coordinator that it has joined: the one that asked for it, or a successor.
void Steps::offer(std::uint8_t w, std::uint8_t c) {
  const auto& me = from_.workers[w];
  const auto& head = from_.coordinators[c];
  const bool awaited = head.phase == Phase::gathering && head.attempt == me.attempt && (head.receipts >> w & 1) == 0;
  const bool unknown = head.phase == Phase::idle && !decided(attempt(me.attempt));
  if (!awaited && !unknown) return;
  State& state = add(Action::offer, w, me.attempt);
  auto& taken = state.coordinators[c];
  taken.phase = Phase::gathering;
  taken.attempt = me.attempt;
  taken.found &= static_cast<std::uint8_t>(~(1 << me.attempt));
  taken.receipts |= static_cast<std::uint8_t>(1 << w);
  if (me.receipt == Data::cut_short && !is(Mutant::commits_without_checking_data)) give_up(state, c);
}

void Steps::restart_job() {
  const auto& workers = from_.workers;
  const bool is_broken = std::any_of(workers.begin(), workers.end(), [](const auto& one) { return !one.lives; });
  const bool is_idle = std::all_of(workers.begin(), workers.end(), [](const auto& one) { return one.attempt == none; });
  if (from_.session == bounds_.sessions || !(is_broken || (bounds_.rollback && is_idle && from_.loaded))) return;
  State& state = add(Action::restart_job);
  state.workers = {};
  ++state.session;
  state.loaded = false;
  state.line = none;
}

// ---- a reader outside of the job, and the world

void Steps::reader() {
  if (from_.reading == Reading::nothing) {
    const auto last = newest();
    if (last == none) return;
    State& state = add(Action::choose, none, last);
    state.missed_newest |= !leads_on(from_, last);
    state.reading = Reading::chosen;
    state.read = last;
    return;
  }
  const auto a = from_.read;
  const auto stop = [](State& state) {
    state.reading = Reading::nothing;
    state.read = none;
  };
  if (from_.reading == Reading::chosen) {
    add(Action::pin, none, a).reading = Reading::pinned;
  } else if (from_.reading == Reading::confirmed) {
    stop(add(Action::stop_reading, none, a));
  } else if (is(Mutant::believes_a_pin_without_reading_again) || (committed(attempt(a)) && !retired(attempt(a)))) {
    State& state = add(Action::read_again, none, a);
    sync_what_was_read(state);
    state.reading = Reading::confirmed;
    state.loaded_undecided |= !committed(attempt(a));
    state.attempts[a].trusted = true;
  } else {
    stop(add(Action::stop_reading, none, a));
  }
}

// All that runs dies; what was visible and not durable stays or goes.
void Steps::cut_power() {
  std::vector<std::uint8_t> open;  // records: 2a, retirements: 2a + 1
  for (std::uint8_t a = 0; a < made(); ++a) {
    if (attempt(a).seen == Seen::visible) open.push_back(static_cast<std::uint8_t>(2 * a));
    if (attempt(a).retirement == Seen::visible) open.push_back(static_cast<std::uint8_t>(2 * a + 1));
  }
  for (unsigned lost = 0; lost < 1U << open.size(); ++lost) {
    State& state = add(Action::cut_power, none, static_cast<std::uint8_t>(lost));
    ++state.power_cuts;
    for (auto& one : state.coordinators) {
      if (one.phase != Phase::off) one = {.phase = Phase::dead};
    }
    for (auto& one : state.workers) one = {.lives = false};
    state.reading = Reading::nothing;
    state.read = none;
    for (std::size_t i = 0; i < open.size(); ++i) {
      auto& one = state.attempts[open[i] / 2];
      auto& seen = open[i] % 2 == 0 ? one.seen : one.retirement;
      const bool goes = (lost >> i & 1) != 0;
      seen = goes ? Seen::absent : Seen::durable;
      if (open[i] % 2 == 0 && goes) one.record = Record::absent;
      if (open[i] % 2 == 0 && !goes) one.settled = true;
    }
  }
}

}  // namespace vckpt::model
