// Which commits a root keeps, and whose data may go: pure functions over a catalog. Everything is decided by ids and
// parents, never by steps, names' order or time.
#pragma once

#include <cstdint>
#include <vector>

#include "coordinator/catalog/lineage.h"

namespace vckpt {

// Whatever is kept, so many commits newer than a retired one stay.
constexpr std::uint32_t newer_commits_min = 2;

// The live commits to retire so that the last `keep` (at least 1) along the current line stay; sorted by id. Commits
// off the line go too, once the line has `keep`. What was saved to be kept for ever stays. A commit is retired only
// where max(keep, newer_commits_min) newer ones stay. Of what cannot be read nothing is known: it is neither retired
// nor counted.
std::vector<CheckpointId> to_retire(const Catalog& catalog, std::uint32_t keep);

// The checkpoints in whose folders the data of a commit lies.
std::vector<CheckpointId> reached(const Decision& decision);

// The uncollected ones whose folder no live or pinned commit reaches, sorted by id. The catalog is read after the pins,
// and both after the grace of the youngest retirement.
std::vector<CheckpointId> collectable(const Catalog& catalog, const std::vector<CheckpointId>& pinned);

}  // namespace vckpt
