#include "tests/simulation/protocol_search.h"

#include <algorithm>
#include <span>
#include <type_traits>

#include "schema/digest.h"

namespace vckpt::model {
namespace {

// Workers are alike: of two states that differ only in which is which, one is searched.
State canonical(const State& state) {
  static_assert(workers_max == 2);
  State other = state;
  std::swap(other.workers[0], other.workers[1]);
  for (auto& attempt : other.attempts) std::swap(attempt.data[0], attempt.data[1]);
  for (auto& coordinator : other.coordinators) {
    coordinator.receipts = static_cast<std::uint8_t>((coordinator.receipts & 1) << 1 | coordinator.receipts >> 1);
  }
  return std::min(state, other);
}

// States in the order in which they were found, each once.
class Visited {
 public:
  static constexpr std::uint32_t no_state = 0xFFFFFFFF;

  // True: it is new.
  bool add(const State& state, std::uint32_t parent) {
    if (2 * (states_.size() + 1) > table_.size()) grow();
    auto& place = find(state);
    if (place != no_state) return false;
    place = static_cast<std::uint32_t>(states_.size());
    states_.push_back(state);
    parents_.push_back(parent);
    return true;
  }

  std::size_t count() const { return states_.size(); }
  const State& state(std::uint32_t number) const { return states_[number]; }
  std::uint32_t parent(std::uint32_t number) const { return parents_[number]; }

 private:
  std::uint32_t& find(const State& state) {
    static_assert(std::has_unique_object_representations_v<State>);
    auto at = xxh3_64(std::as_bytes(std::span(&state, 1))) & (table_.size() - 1);
    while (table_[at] != no_state && states_[table_[at]] != state) at = (at + 1) & (table_.size() - 1);
    return table_[at];
  }

  void grow() {
    table_.assign(std::max<std::size_t>(1024, 2 * table_.size()), no_state);
    for (std::uint32_t number = 0; number < states_.size(); ++number) find(states_[number]) = number;
  }

  std::vector<State> states_;
  std::vector<std::uint32_t> parents_;
  std::vector<std::uint32_t> table_;  // numbers of states; a power of two of them
};

// Walks from the first state to the last, so that a worker keeps its number on the way.
std::vector<std::string> history(const Bounds& bounds, Mutant mutant, const Visited& visited, std::uint32_t last) {
  std::vector<std::uint32_t> way;
  for (auto number = last; number != 0; number = visited.parent(number)) way.push_back(number);
  std::vector<std::string> lines;
  State state;
  for (auto number = way.rbegin(); number != way.rend(); ++number) {
    std::vector<Next> next;
    append_next(bounds, mutant, state, next);
    const auto taken = std::find_if(next.begin(), next.end(),
                                    [&](const Next& one) { return canonical(one.state) == visited.state(*number); });
    lines.push_back(describe(*taken));
    state = taken->state;
  }
  return lines;
}

}  // namespace

std::string Search::summary() const {
  auto text = std::to_string(states) + " states, " + std::to_string(transitions) + " transitions, depth " +
              std::to_string(depth) + (exhausted ? ", exhausted" : ", not exhausted");
  if (!refutation) return text + ", no rule broken";
  text += "\nbroken after " + std::to_string(refutation->history.size()) + " steps: " + refutation->rule;
  for (std::size_t i = 0; i < refutation->history.size(); ++i) {
    text += "\n  " + std::to_string(i + 1) + ". " + refutation->history[i];
  }
  return text;
}

Search search(const Bounds& bounds, Mutant mutant, std::uint64_t states_max) {
  Search found;
  Visited visited;
  visited.add(State{}, 0);
  std::vector<Next> next;
  std::size_t level_end = 1;
  for (std::uint32_t number = 0; number < visited.count() && visited.count() <= states_max; ++number) {
    if (number == level_end) {
      ++found.depth;
      level_end = visited.count();
    }
    const State state = visited.state(number);
    next.clear();
    append_next(bounds, mutant, state, next);
    found.transitions += next.size();
    for (const auto& one : next) {
      ++found.taken[static_cast<std::size_t>(one.action)];
      if (!visited.add(canonical(one.state), number)) continue;
      auto rule = broken_rule(one.state);
      if (rule.empty()) continue;
      const auto last = static_cast<std::uint32_t>(visited.count() - 1);
      found.states = visited.count();
      found.refutation = Refutation{std::move(rule), history(bounds, mutant, visited, last)};
      return found;
    }
  }
  found.states = visited.count();
  found.exhausted = found.states <= states_max;
  return found;
}

}  // namespace vckpt::model
