// What is committed under a root, and how it came about: decisions, their lineage, and reading one checkpoint's
// metadata.
#pragma once

#include <functional>

#include "coordinator/catalog/lineage.h"
#include "runtime/storage.h"

namespace vckpt {

// Completions run on the storage's actor. Folders are synced before their content is believed. The storage outlives
// them.
void read_catalog(Storage& storage, std::function<void(Result<Catalog>)> done);

// corrupt: a segment or plan that does not have the digest the decision names, naming the file.
void read_checkpoint(Storage& storage, const Decision& decision, std::function<void(Result<CheckpointMetadata>)> done);

}  // namespace vckpt
