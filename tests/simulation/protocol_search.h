// Every state of the protocol model that can be reached, breadth first: the first one that breaks a rule comes with a
// shortest history.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tests/simulation/protocol_model.h"

namespace vckpt::model {

struct Refutation {
  std::string rule;
  std::vector<std::string> history;  // one line a step
};

struct Search {
  std::uint64_t states = 0;
  std::uint64_t transitions = 0;
  std::uint64_t depth = 0;                     // of the last state that was reached
  bool exhausted = false;                      // no state was left out
  std::array<std::uint64_t, actions> taken{};  // transitions by their action
  std::optional<Refutation> refutation;

  std::uint64_t count(Action action) const { return taken[static_cast<std::size_t>(action)]; }
  std::string summary() const;
};

// Stops at the first broken rule, or when more than states_max states are known.
Search search(const Bounds& bounds, Mutant mutant, std::uint64_t states_max);

}  // namespace vckpt::model
