// Storage of one simulated process on a MemoryDisk, over virtual time. Completes out of order, and fails when the disk
// is told to.
#pragma once

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "runtime/clock.h"
#include "runtime/storage.h"
#include "tests/support/memory_disk.h"

namespace vckpt {

class MemoryStorage final : public Storage {
 public:
  // The clock is the process's own: calls that are under way when it ends have no further effect.
  MemoryStorage(Clock& clock, MemoryDisk& disk);
  // Drops its completions; files that were not finished stay as the kind of disk leaves them.
  ~MemoryStorage() override;
  MemoryStorage(const MemoryStorage&) = delete;
  MemoryStorage& operator=(const MemoryStorage&) = delete;

  StorageLimits limits() const override { return {disk_.options().write_grain_bytes}; }
  std::string root() const override { return "memory:"; }
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
  using Node = MemoryDisk::Node;
  struct Written;
  struct Place {
    std::shared_ptr<Node> folder;
    std::string last;
  };

  // `apply` makes it visible, `settle` durable.
  template <typename T>
  void submit(std::string what, Done<T> done, std::function<Result<T>()> apply, std::function<void()> settle);

  Result<std::shared_ptr<Node>> folder(const std::string& name) const;
  Result<Place> place(const std::string& name) const;
  Result<std::shared_ptr<Node>> file(const std::string& name) const;
  bool parts() const { return disk_.options().kind == DiskKind::parts; }

  Result<void> apply_create_folder(const std::string& name);
  Result<FileId> apply_create(const std::string& name, std::uint64_t length_bytes);
  Result<void> apply_write(FileId id, std::uint64_t offset_bytes, std::span<const std::byte> bytes);
  Result<void> apply_finish(const Written& file);
  Result<Published> apply_publish(const std::string& name, const Bytes& bytes);
  void settle(const std::vector<std::string>& components);
  void settle_parent(const std::string& name);

  Clock& clock_;
  MemoryDisk& disk_;
  const std::shared_ptr<bool> closed_ = std::make_shared<bool>(false);
  std::unordered_map<FileId, std::shared_ptr<Written>> files_;
  FileId last_file_ = 0;
};

}  // namespace vckpt
