// What is committed under a root, and how it came about: decisions, their lineage, and reading one checkpoint's metadata.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/storage.h"
#include "schema/manifest.h"
#include "schema/options.h"
#include "schema/plan.h"
#include "schema/result.h"

namespace vckpt {

// The decisions under a root, and the folders in data/ that have none.
struct Catalog {
  std::vector<Decision> decisions;     // sorted by id
  std::vector<CheckpointId> undecided;  // sorted by id

  // The last COMMIT by id, never the highest step.
  const Decision* newest() const;
  // COMMITs from the newest back along parents, newest first.
  std::vector<const Decision*> current_line() const;
  // COMMITs that are not on the current line.
  bool abandoned(const Decision& decision) const;
  const Decision* find(const CheckpointId& id) const;
};

// not_found, naming root and selector. A Step means the newest with that step, on the current line first. An id that was
// aborted or never decided is not_found and says so.
Result<const Decision*> resolve(const Catalog& catalog, const Selector& selector, const std::string& root);

// Completions run on the storage's actor. Folders are synced before their content is believed.
void read_catalog(Storage& storage, std::function<void(Result<Catalog>)> done);

struct CheckpointMetadata {
  Decision decision;
  std::shared_ptr<const SavePlan> plan;
  std::shared_ptr<const Manifest> manifest;
};

// corrupt: a segment or plan that does not have the digest the decision names, naming the file.
void read_checkpoint(Storage& storage, const Decision& decision,
                     std::function<void(Result<CheckpointMetadata>)> done);

}  // namespace vckpt
