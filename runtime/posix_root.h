// A folder tree on a POSIX file system, by names relative to its root. Every component of a name is opened from the one
// before it and links are never followed, so nothing leaves the root.
#pragma once

#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/descriptor.h"
#include "runtime/storage.h"
#include "runtime/storage_name.h"

namespace vckpt {

// Threading: may be used from any thread; calls block. Errors as in runtime/storage.h.
class PosixRoot {
 public:
  explicit PosixRoot(std::string path);

  const std::string& path() const { return path_; }

  // Makes the root itself too.
  Result<void> create_folder(const std::string& name);
  Result<std::vector<StorageEntry>> list(const std::string& folder);
  Result<void> sync_folder(const std::string& folder);
  Result<void> remove(const std::string& name);

  // The folder of a name, open, and the name's last component.
  struct Place {
    Descriptor folder;
    std::string last;
  };
  Result<Place> open_place(const std::string& name, std::string_view operation);
  // Open for list and fsync; not_found when it, or the root, is missing.
  Result<Descriptor> open_folder(const std::string& name, std::string_view operation);

  // A regular file, open for reading.
  struct OpenFile {
    Descriptor file;
    std::uint64_t length_bytes = 0;
  };
  Result<OpenFile> open_file(const Place& place, const std::string& name, std::string_view operation);

  Result<void> sync(const Descriptor& descriptor, const std::string& name, std::string_view operation) const;

  // `<path>: <operation>: <reason>` with the code that says what the caller can do.
  Error failure(const std::string& name, std::string_view operation, int error) const;
  std::string full_name(const std::string& name) const;

 private:
  Result<std::vector<std::string>> components_of(const std::string& name, std::string_view operation) const;
  // Descends from the root through all of `components`.
  Result<Descriptor> descend(const std::vector<std::string>& components, const std::string& name,
                             std::string_view operation);
  Result<int> root(std::string_view operation);
  Result<void> make_root();

  const std::string path_;
  std::mutex mutex_;  // guards root_
  Descriptor root_;   // opened by the first call that needs it
};

}  // namespace vckpt
