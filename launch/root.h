// A checkpoint root as the commands see it: which checkpoint is meant, and its metadata.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "coordinator/catalog/catalog.h"
#include "runtime/blocking_storage.h"
#include "schema/options.h"
#include "schema/result.h"

namespace vckpt::launch {

// `ROOT` (newest on the current line), `ROOT@STEP` or `ROOT@ID`. Only what follows the last `@` is looked at, and only
// when it is a number or an id; a root whose own name ends like that is written with a trailing slash.
struct CheckpointName {
  std::string root;
  Selector selector = newest;
  bool operator==(const CheckpointName&) const = default;
};
Result<CheckpointName> parse_checkpoint_name(std::string_view text);

// Threading: one thread at a time.
class Root {
 public:
  // not_found: no such folder, or one that never was a root; invalid: not a folder, no permission. All name the path.
  static Result<std::unique_ptr<Root>> open(const std::string& path);

  BlockingStorage& storage() { return storage_; }
  const RunRecord& run() const { return run_; }
  const std::string& path() const { return storage_.root(); }

  Result<Catalog> catalog();
  Result<CheckpointMetadata> metadata(const Decision& decision);
  // The checkpoint that a selector means, with its metadata.
  Result<CheckpointMetadata> find(const Selector& selector);

 private:
  explicit Root(const std::string& path);

  BlockingStorage storage_;
  RunRecord run_;
};

}  // namespace vckpt::launch
