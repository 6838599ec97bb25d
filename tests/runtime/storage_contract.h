// What every Storage does, as one suite: called from a test case per implementation.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "runtime/storage.h"

namespace vckpt {

// An empty store and the thread or loop that it lives on.
class StorageFixture {
 public:
  virtual ~StorageFixture() = default;
  virtual Storage& storage() = 0;

  // Runs `begin` where the storage lives, and what follows from it until `finished` says true there; fails the test
  // when it takes unreasonably long.
  virtual void run(std::function<void()> begin, std::function<bool()> finished) = 0;

  // Makes one call, checks that it did not complete inside itself, and waits for its answer.
  template <typename T>
  Result<T> wait(std::function<void(Storage&, Storage::Done<T>)> call) {
    const auto answer = std::make_shared<std::optional<Result<T>>>();
    run(
        [this, call = std::move(call), answer] {
          call(storage(), [this, answer](Result<T> result) { take(*answer, std::move(result)); });
          check_open(answer->has_value());
        },
        [answer] { return answer->has_value(); });
    return **answer;
  }

  Result<void> create_folder(const std::string& name);
  Result<FileId> create_file(const std::string& name, std::uint64_t length_bytes);
  Result<void> write(FileId file, std::uint64_t offset_bytes, std::span<const std::byte> bytes);
  Result<void> finish(FileId file);
  Result<void> abandon(FileId file);
  Result<Published> publish_once(const std::string& name, const Bytes& bytes);
  Result<std::uint64_t> length(const std::string& name);
  Result<Bytes> read(const std::string& name, std::uint64_t offset_bytes, std::uint64_t length_bytes);
  Result<Bytes> read_record(const std::string& name, std::uint64_t bytes_max);
  Result<std::vector<StorageEntry>> list(const std::string& folder);
  Result<void> sync_folder(const std::string& folder);
  Result<void> remove(const std::string& name);
  // Creates, writes in grains and finishes.
  Result<void> write_file(const std::string& name, const Bytes& bytes);

 private:
  template <typename T>
  void take(std::optional<Result<T>>& answer, Result<T> result) {
    check_once(answer.has_value());
    answer = std::move(result);
  }
  static void check_open(bool answered);
  static void check_once(bool answered);
};

Bytes test_bytes(std::size_t count, std::uint64_t seed);

void check_storage_contract(const std::function<std::unique_ptr<StorageFixture>()>& make);

}  // namespace vckpt
