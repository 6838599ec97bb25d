// Plans a load: which rank reads which chunks of which files, and which slices travel where, in rounds whose footprint
// fits every rank's budget. Every chunk that anybody wants is read by exactly one rank. Pure and deterministic.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "coordinator/planner/save_planner.h"
#include "schema/manifest.h"
#include "schema/message.h"
#include "schema/options.h"
#include "schema/plan.h"
#include "schema/result.h"

namespace vckpt {

struct StoredCheckpoint {
  std::shared_ptr<const SavePlan> plan;
  std::shared_ptr<const Manifest> manifest;
};

struct LoadRequest {
  std::vector<SectionPlacement> targets;      // sorted by section; all ranks of the loading session
  std::vector<std::vector<ItemOffer>> items;  // wanted by each rank
  std::vector<std::uint64_t> staging_bytes;   // of each rank
  LoadOptions options;
};

struct PlannedLoad {
  std::vector<LoadSlice> slices;          // one per rank; ordinal and generation are the caller's to fill
  std::uint64_t wanted_unique_bytes = 0;  // stored bytes that some rank wants, once
  std::uint64_t storage_bytes_read = 0;   // chunks touched, each once
  std::uint64_t bytes_needed = 0;         // all target pieces, as stored (before casts; without what stays as it is)
  std::uint64_t bytes_received = 0;       // from other ranks
  std::uint64_t descriptors = 0;          // target pieces
  std::uint64_t most_loaded_read_bytes = 0;
  double mean_read_bytes = 0;
  double bound_read_bytes = 0;
};

// invalid, naming section, fqn, ranks and numbers: a wanted name that is missing or a stored one that is unexpected (as
// the options say), a dtype or shape that differs unasked, a rename that collides, per_rank items on another world
// size. exhausted: one chunk and what must be packed from it do not fit a rank's budget (naming rank, budget and need).
// corrupt: plan and manifest do not belong together.
Result<PlannedLoad> plan_load(const StoredCheckpoint& stored, const LoadRequest& request);

// A manifest for a plan that was never written: right sizes, no digests, and the zero digest for the plan's, by which
// plan_load knows that chunk digests are not to be expected. For planning without data.
Result<Manifest> expected_manifest(const SavePlan& plan, const CheckpointId& id);

}  // namespace vckpt
