// Storage for programs that have nothing else to do meanwhile: every call waits for its answer, at most for a deadline.
// Never on an actor's thread.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/actor.h"
#include "runtime/posix_storage.h"
#include "runtime/storage.h"

namespace vckpt {

// Threading: may be used from any thread. Errors as in runtime/storage.h, and unavailable when the deadline has passed:
// the call may then still take effect.
class BlockingStorage {
 public:
  BlockingStorage(std::string root, Duration deadline, PosixOptions options = {});
  ~BlockingStorage();
  BlockingStorage(const BlockingStorage&) = delete;
  BlockingStorage& operator=(const BlockingStorage&) = delete;

  // Runs `begin(storage, done)` on the storage's actor and waits until `done` is called: for anything that is made of
  // storage calls. `what` names it in the error of a passed deadline. After that `done` is ignored, so `begin` owns all
  // that it touches.
  template <typename T>
  Result<T> wait(std::string_view what, std::function<void(Storage&, Storage::Done<T>)> begin);

  const std::string& root() const { return root_; }
  Result<void> probe();
  Result<void> create_folder(const std::string& name);
  Result<FileId> create_file(const std::string& name, std::uint64_t length_bytes);
  Result<void> write(FileId file, std::uint64_t offset_bytes, Bytes bytes);
  Result<void> finish(FileId file);
  Result<void> abandon(FileId file);
  Result<Published> publish_once(const std::string& name, Bytes bytes);
  Result<std::uint64_t> length(const std::string& name);
  Result<Bytes> read(const std::string& name, std::uint64_t offset_bytes, std::uint64_t length_bytes);
  Result<Bytes> read_record(const std::string& name, std::uint64_t bytes_max);
  Result<std::vector<StorageEntry>> list(const std::string& folder);
  Result<void> sync_folder(const std::string& folder);
  Result<void> remove(const std::string& name);

 private:
  template <typename T>
  struct Answer {
    std::mutex mutex;  // guards `result`
    std::condition_variable given;
    std::optional<Result<T>> result;
  };
  Error late(std::string_view what) const;

  const std::string root_;
  const Duration deadline_;
  Actor actor_;
  std::unique_ptr<PosixStorage> storage_;
};

template <typename T>
Result<T> BlockingStorage::wait(std::string_view what, std::function<void(Storage&, Storage::Done<T>)> begin) {
  const auto answer = std::make_shared<Answer<T>>();
  actor_.post([this, answer, begin = std::move(begin)] {
    begin(*storage_, [answer](Result<T> result) {
      const std::lock_guard lock(answer->mutex);
      if (!answer->result) answer->result = std::move(result);
      answer->given.notify_one();
    });
  });
  std::unique_lock lock(answer->mutex);
  if (!answer->given.wait_for(lock, deadline_, [&answer] { return answer->result.has_value(); })) return late(what);
  return *std::move(answer->result);
}

}  // namespace vckpt
