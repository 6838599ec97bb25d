// Who persists what: a placement in which every element lives once. Grids that are held exclusively stay grids; what
// several ranks hold is shared out to the bound and cut as little as that needs.
#pragma once

#include <cstdint>
#include <vector>

#include "coordinator/planner/holder_sets.h"
#include "coordinator/planner/holdings.h"
#include "coordinator/planner/save_planner.h"
#include "schema/plan.h"

namespace vckpt {

// The holdings' covers are exact. `balance` counts over all sections together.
PlannedSave decide_ownership(const std::vector<Holdings>& sections, const std::vector<SectionPlacement>& placements,
                             const HolderSets& sets, std::uint64_t grain_bytes);

}  // namespace vckpt
