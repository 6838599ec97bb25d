// Who holds what in a simulated job: the same tensors for any number of ranks.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "coordinator/planner/save_planner.h"

namespace vckpt {

using MakeLayout = std::function<std::vector<SectionPlacement>(std::uint32_t ranks)>;

// Two sections of a few KiB: rows cut over the ranks (unevenly), a replicated norm, a scalar, a sub-byte tensor that
// lies whole on every rank, and flat ranges.
std::vector<SectionPlacement> plain_layout(std::uint32_t ranks);

// Tensors that follow from `tensor_seed` alone, spread by `spread_seed`: grids of a random mesh, ranges, boxes,
// buckets.
MakeLayout random_layout(std::uint64_t tensor_seed, std::uint64_t spread_seed);

// One section of `mib` MiB in tensors of 1 MiB, cut along columns, so that every load reshards.
MakeLayout large_layout(std::uint64_t mib);

}  // namespace vckpt
