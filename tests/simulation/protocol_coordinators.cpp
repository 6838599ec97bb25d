#include "tests/simulation/protocol_steps.h"

#include <algorithm>

namespace vckpt::model {

namespace {

constexpr std::uint8_t all_receipts = (1 << workers_max) - 1;

}  // namespace

void rest(CoordinatorState& coordinator) {
  coordinator.phase = Phase::idle;
  coordinator.attempt = none;
  coordinator.verdict = Record::absent;
  coordinator.receipts = 0;
}

void give_up(State& state, std::uint8_t c) {
  state.coordinators[c].phase = Phase::deciding;
  state.coordinators[c].verdict = Record::abort;
  state.coordinators[c].receipts = 0;
}

bool Steps::highest(std::uint8_t c) const {
  return c + 1 == coordinators_max || from_.coordinators[c + 1].phase == Phase::off;
}
// The epoch is probed: on to the next phase (true), or out.
bool Steps::probe(Action action, std::uint8_t c, Phase phase) {
  const bool goes_on = highest(c) || is(Mutant::accepts_stale_epochs);
  State& state = add(goes_on ? action : Action::superseded, c, from_.coordinators[c].attempt);
  if (goes_on) {
    state.coordinators[c].phase = phase;
  } else {
    state.coordinators[c] = {.phase = Phase::dead};
  }
  return goes_on;
}

void Steps::coordinator(std::uint8_t c) {
  const auto& me = from_.coordinators[c];
  if (me.phase == Phase::dead) return;
  if (me.phase == Phase::off) {
    if (c == 0 || from_.coordinators[c - 1].phase != Phase::off) {
      add(Action::claim, c).coordinators[c].phase = Phase::claimed;
    }
    return;
  }
  add(Action::crash, c).coordinators[c] = {.phase = Phase::dead};
  switch (me.phase) {
    case Phase::claimed: return list(c);
    case Phase::idle: return me.found != 0 ? take_up(c) : serve(c);
    case Phase::starting: return create(c);
    case Phase::gathering: return decide(c);
    case Phase::deciding: return link(c);
    case Phase::linked: return sync_decision(c);
    case Phase::durable: probe(Action::confirm, c, Phase::confirmed); return;
    case Phase::confirmed: return go_on(c);
    default: return collection(c);
  }
}

void Steps::list(std::uint8_t c) {
  State& state = add(Action::list, c);
  sync_what_was_read(state);
  for (std::uint8_t a = 0; a < made(); ++a) {
    if (attempt(a).epoch <= c && !decided(attempt(a))) state.coordinators[c].found |= 1 << a;
  }
  state.coordinators[c].phase = Phase::idle;
}

void Steps::take_up(std::uint8_t c) {
  std::uint8_t a = 0;
  while ((from_.coordinators[c].found >> a & 1) == 0) ++a;
  State& state = add(Action::take_up, c, a);
  state.coordinators[c].found &= static_cast<std::uint8_t>(~(1 << a));
  state.coordinators[c].attempt = a;
  state.coordinators[c].phase = Phase::gathering;
  if (is(Mutant::deletes_before_abort) && !attempt(a).gone) {
    remove_data(add(Action::remove_undecided, c, a).attempts[a]);
  }
}

// All ranks have called a save, or a load, of this coordinator.
bool Steps::called(std::uint8_t c) const {
  return std::all_of(from_.workers.begin(), from_.workers.end(),
                     [&](const WorkerState& one) { return one.lives && one.epoch == c + 1 && one.attempt == none; });
}

void Steps::serve(std::uint8_t c) {
  if (called(c) && from_.loaded && made() < bounds_.attempts) probe(Action::find_highest, c, Phase::starting);
  if (called(c) && !from_.loaded) load(c);
  for (std::uint8_t a = 0; a < made(); ++a) {
    const auto& one = attempt(a);
    if (one.record == Record::abort && !one.gone) {
      State& state = add(Action::remove_aborted, c, a);
      sync_what_was_read(state);
      remove_data(state.attempts[a]);
    }
    if (!committed(one) || one.gone) continue;
    if (!retired(one) && highest(c) && succeeded(a)) retire(c, a);
    if (retired(one)) {  // somebody's, who did not collect it
      State& state = add(Action::sync_retirement, c, a);
      state.attempts[a].retirement = Seen::durable;
      state.coordinators[c].attempt = a;
      state.coordinators[c].phase = Phase::retired;
    }
  }
}

// There is a newer commit, which this coordinator knows to be durable.
bool Steps::succeeded(std::uint8_t a) const {
  for (std::uint8_t b = 0; b < made(); ++b) {
    const bool counts = is(Mutant::retires_before_the_successor_commits)
                            ? true
                            : committed(attempt(b)) && attempt(b).seen == Seen::durable;
    if (older(attempt(a), attempt(b)) && counts) return true;
  }
  return false;
}

void Steps::retire(std::uint8_t c, std::uint8_t a) {
  State& state = add(Action::retire, c, a);
  state.attempts[a].retirement = Seen::visible;
  state.coordinators[c].attempt = a;
  state.coordinators[c].phase = Phase::retiring;
}

void Steps::load(std::uint8_t c) {
  if (!highest(c) && !is(Mutant::accepts_stale_epochs)) {
    add(Action::superseded, c).coordinators[c] = {.phase = Phase::dead};
    return;
  }
  const auto last = newest();
  if (last == none) {
    add(Action::load_nothing, c).loaded = true;
    return;
  }
  for (std::uint8_t a = 0; a < made(); ++a) {
    const bool readable = committed(attempt(a)) && !retired(attempt(a));
    if (a != last && (!bounds_.rollback || !readable)) continue;
    State& state = add(Action::load, c, a);
    sync_what_was_read(state);
    if (a == last) state.missed_newest |= !leads_on(from_, a);
    state.loaded_undecided |= !committed(attempt(a));
    state.attempts[a].trusted = true;
    state.loaded = true;
    state.line = a;
    if (a == last) state.head = a;
  }
}

void Steps::create(std::uint8_t c) {
  if (!called(c) || !from_.loaded || made() == bounds_.attempts) {
    rest(add(Action::give_up_start, c).coordinators[c]);
    return;
  }
  const auto a = made();
  const auto before = from_.line == none ? 0 : attempt(from_.line).step;
  for (int rise = 1; rise <= (bounds_.rollback ? 2 : 1); ++rise) {
    State& state = add(Action::create, c, a);
    auto& one = state.attempts[a];
    one.epoch = static_cast<std::uint8_t>(c + 1);
    one.number =
        static_cast<std::uint8_t>(1 + std::count_if(from_.attempts.begin(), from_.attempts.end(),
                                                    [&](const AttemptState& other) { return other.epoch == c + 1; }));
    one.session = from_.session;
    one.parent = from_.line;
    one.step = static_cast<std::uint8_t>(before + rise);
    state.coordinators[c].attempt = a;
    state.coordinators[c].phase = Phase::gathering;
  }
}

void Steps::decide(std::uint8_t c) {
  const auto& me = from_.coordinators[c];
  const bool is_own = attempt(me.attempt).epoch == c + 1;
  const bool hasty = is(is_own ? Mutant::commits_without_all_receipts : Mutant::rolls_forward_without_all_receipts);
  const bool enough = me.receipts == all_receipts || (hasty && me.receipts != 0);
  if (enough && probe(is_own ? Action::decide : Action::roll_forward, c, Phase::deciding)) {
    next_.back().state.coordinators[c].verdict = Record::commit;
  }
  give_up(add(Action::decide, c, me.attempt), c);
}

void Steps::link(std::uint8_t c) {
  const auto& me = from_.coordinators[c];
  const auto& one = attempt(me.attempt);
  if (decided(one) && !is(Mutant::overwrites_decisions)) {
    State& state = add(Action::taken, c, me.attempt);
    sync_what_was_read(state);
    rest(state.coordinators[c]);
    if (one.epoch == c + 1) state.coordinators[c] = {.phase = Phase::dead};
    return;
  }
  State& state = add(Action::link, c, me.attempt);
  state.decided_twice |= decided(one) || one.settled;
  state.attempts[me.attempt].record = me.verdict;
  state.attempts[me.attempt].seen = Seen::visible;
  state.coordinators[c].phase = Phase::linked;
}

void Steps::sync_decision(std::uint8_t c) {
  const auto& me = from_.coordinators[c];
  State& state = add(Action::sync, c, me.attempt);
  sync_decisions(state);
  if (me.verdict == Record::commit) {
    state.coordinators[c].phase = Phase::durable;
  } else {
    rest(state.coordinators[c]);
  }
}

void Steps::go_on(std::uint8_t c) {
  const bool awaited = std::any_of(from_.workers.begin(), from_.workers.end(), [&](const WorkerState& one) {
    return one.lives && one.epoch == c + 1 && one.attempt == from_.coordinators[c].attempt;
  });
  if (!awaited) rest(add(Action::go_on, c).coordinators[c]);
}

void Steps::collection(std::uint8_t c) {
  const auto a = from_.coordinators[c].attempt;
  if (from_.coordinators[c].phase == Phase::retiring) {
    State& state = add(Action::sync_retirement, c, a);
    state.attempts[a].retirement = Seen::durable;
    state.coordinators[c].phase = Phase::retired;
  } else if (from_.coordinators[c].phase == Phase::retired) {
    const bool is_pinned = from_.read == a && from_.reading >= Reading::pinned;
    const bool keeps = is_pinned && !is(Mutant::collects_without_looking_at_pins);
    State& state = add(keeps ? Action::keep_pinned : Action::look_at_pins, c, a);
    state.coordinators[c].phase = Phase::collecting;
    if (keeps) rest(state.coordinators[c]);
  } else {
    State& state = add(Action::collect, c, a);
    remove_data(state.attempts[a]);
    if (is(Mutant::frees_the_name_of_a_retired_one)) {
      state.attempts[a].record = Record::absent;
      state.attempts[a].seen = Seen::absent;
    }
    rest(state.coordinators[c]);
  }
}

}  // namespace vckpt::model
