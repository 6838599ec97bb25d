// Plans a save: checks that what the ranks hold covers every tensor exactly, then decides who persists what. Pure and
// deterministic: equal placements give equal plans.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "schema/layout.h"
#include "schema/plan.h"
#include "schema/result.h"

namespace vckpt {

struct SectionPlacement {
  std::string section;
  Placement placement;  // of all ranks; a rank without this section has an empty body
};

struct PlannedSave {
  std::shared_ptr<const SavePlan> plan;
  Balance balance;  // over all sections together
};

constexpr std::uint64_t split_grain_bytes = 4 << 20;

// Sections sorted by name. invalid, naming section, fqn and ranks: a gap or an overlap in a tensor's cover (with the
// number of elements and the boxes), ranks that disagree on dtype or shape, one rank that gives one piece twice; and
// what check_layout refuses. exhausted: more tensors or pieces than the limits of schema/layout.h.
Result<PlannedSave> plan_save(const std::vector<SectionPlacement>& sections,
                              std::uint64_t grain_bytes = split_grain_bytes);

}  // namespace vckpt
