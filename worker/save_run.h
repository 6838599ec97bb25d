// One rank's part of a save: copies its pieces out of the caller's memory into staging, digests them, writes them to
// one file per section and makes the files durable. The unit is a block, a stretch of one file (its header included) of
// at most block_bytes_max; blocks are copied in file order while staging lasts. When all fit, nothing but copying
// happens until the caller is let go; when not, blocks are written and their staging reused while the caller waits
// (waves).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/arena.h"
#include "runtime/compute.h"
#include "runtime/storage.h"
#include "schema/message.h"
#include "schema/result.h"
#include "worker/tensor_table.h"

namespace vckpt {

constexpr std::uint64_t block_bytes_max = 4 << 20;  // more only where the store's write grain is larger
constexpr std::size_t copies_in_flight_max = 16;    // blocks of one run being copied
constexpr std::size_t writes_in_flight_max = 4;     // blocks of one run being written

// Threading: lives on one actor, which owns storage, compute and arena too; callbacks run there. It keeps itself alive
// while anything of it is in flight; the seams outlive it.
class SaveRun : public std::enable_shared_from_this<SaveRun> {
 public:
  struct Task {
    std::shared_ptr<const SaveSlice> slice;
    std::shared_ptr<const TensorTable> table;
    Rank rank;
    OverBudget over_budget = OverBudget::wait;
  };
  struct Callbacks {
    std::function<void()> staged;  // all is copied: the caller's memory may change
    std::function<void(Phase, std::uint64_t bytes)> moved;
    // Once, with the records of the durable files or the first error; the caller's memory is not touched any more.
    std::function<void(Result<std::vector<FileRecord>>)> ended;
    std::function<void()> freed;  // staging was given back: other runs may go on
  };

  SaveRun(Storage& storage, Compute& compute, Arena& arena, Task task, Callbacks callbacks);
  ~SaveRun();

  void start();
  // Staging may be there now.
  void resume();
  // Ends the run with `aborted`; files that were begun are removed.
  void stop();

 private:
  struct File;
  struct Block;

  Result<void> prepare();
  Result<void> prepare_file(const SectionSlice& section);
  void pump();
  void copy_blocks();
  void copy(std::shared_ptr<Block> block);
  void copied(Block& block);
  void drain(File& file);
  void digest(File& file, std::shared_ptr<Block> block);
  void create(File& file);
  void write(File& file, std::shared_ptr<Block> block);
  void written(File& file, Block& block);
  void finish(File& file);
  void fail(Error error);
  void abandon_files();
  void end_if_quiet();
  Error with_place(const Error& error, const File& file) const;

  Storage& storage_;
  Compute& compute_;
  Arena& arena_;
  Task task_;
  Callbacks callbacks_;
  std::vector<std::unique_ptr<File>> files_;
  std::uint64_t block_bytes_ = 0;
  std::uint64_t total_bytes_ = 0;
  std::size_t next_file_ = 0;  // of the next block to copy
  std::uint64_t next_offset_bytes_ = 0;
  std::size_t copies_in_flight_ = 0;
  std::size_t writes_in_flight_ = 0;
  std::uint64_t copied_bytes_ = 0;
  std::uint64_t written_bytes_ = 0;
  std::uint64_t durable_bytes_ = 0;
  std::size_t files_durable_ = 0;
  bool draining_ = false;  // digests and writes go on
  bool staged_ = false;
  bool ended_ = false;
  std::optional<Error> error_;
};

}  // namespace vckpt
