// Random ways to spread tensors over ranks.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "coordinator/planner/save_planner.h"

namespace vckpt {

using Random = std::mt19937_64;

std::uint64_t below(Random& random, std::uint64_t bound);  // 0..bound-1

// Small tensors, some of them scalars or without elements.
std::vector<TensorSpec> random_tensors(Random& random, std::size_t count);

// A placement that holds every element exactly once: grids of a random mesh (uneven, empty and replicated parts), flat
// ranges with random borders, ranges inside of boxes, buckets over several tensors, random boxes on random ranks.
SectionPlacement random_placement(Random& random, const std::string& section, const std::vector<TensorSpec>& tensors,
                                  std::uint32_t world_size);

// Changes something small, which may or may not spoil the cover. Boxes and ranges stay within bounds.
void disturb(Random& random, SectionPlacement& placement);

}  // namespace vckpt
