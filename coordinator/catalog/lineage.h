// Decisions and their lineage as values: which checkpoint is newest, which line of training it continues, which one a
// selector means. A retired commit keeps its decision, so that lines can be followed through it, and is never meant.
// No I/O.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "schema/manifest.h"
#include "schema/options.h"
#include "schema/plan.h"
#include "schema/result.h"

namespace vckpt {

// A decision record that cannot be read.
struct UnreadableDecision {
  CheckpointId id;
  Error error;
  bool operator==(const UnreadableDecision&) const = default;
};

// The decisions under a root, what was retired of them, and the folders in data/ that have none.
struct Catalog {
  std::vector<Decision> decisions;             // sorted by id
  std::vector<CheckpointId> retired;           // sorted by id: those that have a retirement
  std::vector<CheckpointId> uncollected;       // sorted by id: COMMIT, surely retired, and their folder is still there
  std::vector<CheckpointId> undecided;         // sorted by id
  std::vector<CheckpointId> leftovers;         // sorted by id: aborted, and their folder is still there
  std::vector<UnreadableDecision> unreadable;  // sorted by id

  bool is_retired(const CheckpointId& id) const;
  // A COMMIT that is not retired.
  bool live(const Decision& decision) const;
  // The last live commit by id, never the highest step.
  const Decision* newest() const;
  // Live commits from the newest back along parents, newest first.
  std::vector<const Decision*> current_line() const;
  // COMMITs, retired or not, that are not the newest or one of its ancestors.
  bool abandoned(const Decision& decision) const;
  const Decision* find(const CheckpointId& id) const;

 private:
  std::vector<const Decision*> ancestry() const;  // of the newest, itself first
};

// not_found, naming root and selector. A Step means the newest live commit with that step, on the current line first.
// An id that was aborted, retired or never decided is not_found and says so. corrupt: what was asked for may be a
// decision that is unreadable.
Result<const Decision*> resolve(const Catalog& catalog, const Selector& selector, const std::string& root);

struct CheckpointMetadata {
  Decision decision;
  std::shared_ptr<const SavePlan> plan;
  std::shared_ptr<const Manifest> manifest;
};

}  // namespace vckpt
