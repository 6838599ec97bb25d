// Identity of a root and of its writers: the RUN record, and one epoch record per writer incarnation. A writer without
// a server (a one-process job, an import) claims an epoch too.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "runtime/storage.h"
#include "schema/manifest.h"

namespace vckpt {

// Reads RUN; makes it when it is missing, with `name` (empty: a name made from the nonce) and `nonce`. invalid: the
// root belongs to a run of another name.
void open_run(Storage& storage, const std::string& name, Nonce nonce, std::function<void(Result<RunRecord>)> done);

// The highest number among the epoch records; 0 without any.
void highest_epoch(Storage& storage, std::function<void(Result<Epoch>)> done);

// The record with the highest number.
void newest_epoch(Storage& storage, std::function<void(Result<std::optional<EpochRecord>>)> done);

// Publishes `record` under the next free number, which is filled in. Its nonce tells our record from another's when an
// answer was lost.
void claim_epoch(Storage& storage, EpochRecord record, std::function<void(Result<EpochRecord>)> done);

}  // namespace vckpt
