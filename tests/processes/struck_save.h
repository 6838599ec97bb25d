// A save by real processes that suffer a fault, and what must be true of the root afterwards.
#pragma once

#include <optional>
#include <string>

#include "tests/processes/fault.h"

namespace vckpt::testing {

constexpr int struck_ranks = 3;

// Saves step 1, then step 2 with the fault, and checks what stands: step 1 is there, step 2 only if it was decided;
// what is there is whole and loads bit exact; step 3 is saved. What the ranks of step 2 said; nothing when the fault
// did not strike.
std::optional<launch::Ran> struck_save(const Fault& fault);

// The one line with which a rank's drill ended; fails the test when there is none.
std::string error_of(const launch::Ran& ran, int rank);

bool holds(const std::string& text, const std::string& part);

}  // namespace vckpt::testing
