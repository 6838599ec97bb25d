// In which round a reading happens and which slices of it travel to whom. Rounds are filled so that at no rank the
// footprint of a round passes the staging budget: the chunks it reads, what it packs for others, and what it receives.
#pragma once

#include <cstdint>
#include <vector>

#include "coordinator/planner/readings.h"
#include "coordinator/planner/wants.h"

namespace vckpt {

// Staging is charged by whole pages: each run of chunks; what a reader packs of it, each part once, however many ranks
// want it; each transfer received.
constexpr std::uint64_t staging_page_bytes = 4096;
// Of one run of chunks: longer ones are cut, so that reading and sending overlap.
constexpr std::uint64_t run_bytes_max = 64 << 20;
// After this much one reader's next run waits for the next round.
constexpr std::uint64_t round_bytes_max = 256 << 20;

struct Routes {
  std::vector<LoadSlice> slices;      // of each rank: rounds, tensors, files, reads, sends, receives, gaps
  std::uint64_t bytes_delivered = 0;  // to their targets, by whatever way
  std::uint64_t bytes_received = 0;   // from other ranks
};

// exhausted: one chunk and what must be packed from it do not fit a rank's budget; names rank, budget and need.
Result<Routes> plan_routes(const SavePlan& plan, const Wants& wants, const Readings& readings, const HolderSets& sets,
                           const std::vector<std::uint64_t>& staging_bytes);

}  // namespace vckpt
