// Storage on a POSIX file system: blocking calls on a few threads, completions on the owning actor.
#pragma once

#include <memory>
#include <string>
#include <unordered_map>

#include "runtime/actor.h"
#include "runtime/outbox.h"
#include "runtime/posix_records.h"
#include "runtime/posix_root.h"
#include "runtime/storage.h"
#include "runtime/thread_pool.h"

namespace vckpt {

struct PosixOptions {
  std::size_t threads = 4;
  std::size_t calls_max = 65'536;  // waiting for a thread; one more is exhausted
  Publishing publishing = Publishing::link;
};

// Threading: as Storage; made and destroyed on the actor's thread, or while the actor runs nothing of it.
class PosixStorage final : public Storage {
 public:
  // Touches nothing. A root that is missing is made by create_folder; other calls answer not_found.
  PosixStorage(Actor& actor, std::string root, PosixOptions options = {});
  // close, with the longest wait. Files that were not finished stay as they are.
  ~PosixStorage() override;
  PosixStorage(const PosixStorage&) = delete;
  PosixStorage& operator=(const PosixStorage&) = delete;

  // Drops all completions and waits for the calls that run. False when some still run after `wait` (a dead disk or
  // mount): the memory given to them must then be left alone for ever.
  bool close(Duration wait);

  StorageLimits limits() const override { return {}; }
  std::string root() const override;
  void probe(Done<void> done) override;
  void create_folder(const std::string& name, Done<void> done) override;
  void create_file(const std::string& name, std::uint64_t length_bytes, Done<FileId> done) override;
  void write(FileId file, std::uint64_t offset_bytes, std::span<const std::byte> bytes, Done<void> done) override;
  void finish(FileId file, Done<void> done) override;
  void abandon(FileId file, Done<void> done) override;
  void publish_once(const std::string& name, Bytes bytes, Done<Published> done) override;
  void length(const std::string& name, Done<std::uint64_t> done) override;
  void read(const std::string& name, std::uint64_t offset_bytes, std::span<std::byte> target, Done<void> done) override;
  void read_record(const std::string& name, std::uint64_t bytes_max, Done<Bytes> done) override;
  void list(const std::string& folder, Done<std::vector<StorageEntry>> done) override;
  void sync_folder(const std::string& folder, Done<void> done) override;
  void remove(const std::string& name, Done<void> done) override;

 private:
  struct WrittenFile;

  template <typename T>
  void submit(Done<T> done, std::function<Result<T>(PosixRoot&)> work);
  template <typename T>
  void complete(Done<T> done, Result<T> result);
  // Leaves the table; null when there is no such file.
  std::shared_ptr<WrittenFile> take(FileId file);

  const std::shared_ptr<PosixRoot> root_;
  const std::shared_ptr<Outbox> outbox_;
  const PosixOptions options_;
  std::unordered_map<FileId, std::shared_ptr<WrittenFile>> files_;
  FileId last_file_ = 0;
  ThreadPool pool_;
};

}  // namespace vckpt
