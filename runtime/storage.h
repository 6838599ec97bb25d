// Durable bytes as a seam: POSIX now, object stores later. Submit and complete: no call blocks, every call completes
// exactly once. Names are relative to the root, made by schema/names.h; a store never follows links or leaves the root.
// Nothing published or finished is ever changed; a data file is created exclusively, written once, then finished.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "schema/codec.h"
#include "schema/result.h"

namespace vckpt {

using FileId = std::uint64_t;  // of a file being written; never 0

struct StorageLimits {
  // Every write but the one that ends at the file's length starts and ends at a multiple of this. 1: anything goes.
  std::uint64_t write_grain_bytes = 1;
};

enum class Published : std::uint8_t {
  made = 1,   // now, by this call
  equal = 2,  // the same bytes stood there (an earlier answer was lost)
  other = 3,  // other bytes stand there: somebody else decided
};

struct StorageEntry {
  std::string name;  // last component
  bool folder = false;
  std::uint64_t length_bytes = 0;
  bool operator==(const StorageEntry&) const = default;
};

// Threading: one actor owns a Storage; completions run on that actor, never from inside the call, in any order.
// Memory given to write or read stays valid until the completion. Errors name the file and the operation:
// not_found, invalid (not a regular file, a link, no permission), exhausted (no space, quota), unavailable (I/O error).
class Storage {
 public:
  template <typename T>
  using Done = std::function<void(Result<T>)>;

  virtual ~Storage() = default;
  virtual StorageLimits limits() const = 0;
  virtual std::string root() const = 0;  // for messages

  // Checks once what the store must be able to do (publish exclusively, preallocate); invalid names what it cannot.
  virtual void probe(Done<void> done) = 0;

  // Makes the folder and its missing parents, the root among them, durably. One that is there already is fine.
  virtual void create_folder(const std::string& name, Done<void> done) = 0;

  // A new data file of `length_bytes`, space reserved; invalid when the name exists.
  virtual void create_file(const std::string& name, std::uint64_t length_bytes, Done<FileId> done) = 0;
  virtual void write(FileId file, std::uint64_t offset_bytes, std::span<const std::byte> bytes, Done<void> done) = 0;
  // Makes the file and its name durable and closes it; every write has completed. invalid when they do not add up to
  // its length. A failed finish is final: the file is lost, never finished again.
  virtual void finish(FileId file, Done<void> done) = 0;
  // Closes and removes a file that was not finished.
  virtual void abandon(FileId file, Done<void> done) = 0;

  // Publishes a record, whole and durable or not at all, and never over another. After an error whether it stands is
  // unknown: publish the same bytes again.
  virtual void publish_once(const std::string& name, Bytes bytes, Done<Published> done) = 0;

  virtual void length(const std::string& name, Done<std::uint64_t> done) = 0;
  // Fills `target` from `offset_bytes`; corrupt when the file ends before.
  virtual void read(const std::string& name, std::uint64_t offset_bytes, std::span<std::byte> target,
                    Done<void> done) = 0;
  // A record as a whole; corrupt above `bytes_max`, since nobody publishes such a record.
  virtual void read_record(const std::string& name, std::uint64_t bytes_max, Done<Bytes> done) = 0;

  // Entries of a folder sorted by name, the root's for an empty name; none when there is no such folder, not_found when
  // there is no root. Temporary names are left out.
  virtual void list(const std::string& folder, Done<std::vector<StorageEntry>> done) = 0;
  // What is visible in the folder becomes durable: before anybody acts on a record that he read.
  virtual void sync_folder(const std::string& folder, Done<void> done) = 0;
  // Removes a file, or a folder with all that is in it. What is gone already is fine.
  virtual void remove(const std::string& name, Done<void> done) = 0;
};

}  // namespace vckpt
