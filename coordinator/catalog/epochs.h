// Identity of a root and of its writers: the RUN record, and one epoch record per writer incarnation. A writer without
// a server (a one-process job, an import) claims an epoch too.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "runtime/storage.h"
#include "schema/manifest.h"

namespace vckpt {

// The RUN record, made durable before it is believed; nothing when there is none.
void find_run(Storage& storage, std::function<void(Result<std::optional<RunRecord>>)> done);

// Makes these folders; completes with the first error, when all have answered.
void create_folders(Storage& storage, const std::vector<std::string>& names, std::function<void(Result<void>)> done);

// Makes the folders that records are published into, and the root itself, when they are missing; and checks what the
// store must be able to do.
void prepare_root(Storage& storage, std::function<void(Result<void>)> done);

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
