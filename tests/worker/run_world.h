// Ranks with runs of their own over one memory disk in virtual time, without coordinator: a plan is made from what the
// ranks hold, and every rank gets its slice of it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/arena.h"
#include "schema/manifest.h"
#include "schema/message.h"
#include "schema/plan.h"
#include "tests/support/memory_disk.h"
#include "tests/support/memory_storage.h"
#include "tests/support/virtual_clock.h"
#include "vckpt/worker.h"
#include "worker/tensor_table.h"

namespace vckpt {

// Memory of one held piece.
struct HeldMemory {
  TensorSpec spec;
  Box box;
  std::optional<Range> range;
  std::vector<std::byte> bytes;  // packed
};

// The bytes of a box, in its row-major order, of the one content that a test tensor has: a function of its name and of
// where a byte lies in the whole tensor.
std::vector<std::byte> content(const TensorSpec& spec, const Box& box);

struct RunRank {
  State state;
  std::vector<std::unique_ptr<HeldMemory>> held;
  std::shared_ptr<const TensorTable> table;

  HeldMemory& hold(const std::string& section, const TensorSpec& spec, const Box& box,
                   std::optional<Range> range = std::nullopt);
  // Fills what is held with what the tensors hold, or with one byte.
  void fill();
  void fill(std::byte value);
  // Names of held pieces whose memory is not what the tensors hold.
  std::vector<std::string> differences() const;
  void seal();
};

constexpr CheckpointId test_id{Epoch{1}, Attempt{2}, Step{3}};

// Three sections of odd shapes over `ranks` ranks: cut, replicated, as flat ranges, scalars and empty pieces.
std::vector<RunRank> mixed_ranks(std::uint32_t ranks, std::uint64_t seed);

std::shared_ptr<const SavePlan> plan_of(const std::vector<RunRank>& ranks);
std::shared_ptr<const SaveSlice> slice_of(const SavePlan& plan, Rank rank);

// What the file of a rank and section has to hold behind its header.
std::vector<std::byte> expected_data(const SectionPlan& plan, Rank rank);

struct RunMachine {
  VirtualClock clock;
  MemoryDisk disk;
  explicit RunMachine(DiskOptions options) : disk(options) {}
};

struct SaveOutcome {
  bool staged = false;
  bool staged_before_ended = false;
  std::optional<Result<std::vector<FileRecord>>> files;
  std::uint64_t staging_peak_bytes = 0;
};

// Saves all ranks at once; ends when all runs have, and everything is at rest. `at_staged` runs when a rank is let go.
std::vector<SaveOutcome> run_saves(RunMachine& machine, const std::vector<RunRank>& ranks, const SavePlan& plan,
                                   std::uint64_t budget_bytes, OverBudget over_budget = OverBudget::wait,
                                   const std::function<void(std::size_t rank)>& at_staged = {});

// A checkpoint on a machine's disk, as a load plans with it.
struct SavedWorld {
  std::shared_ptr<const SavePlan> plan;
  std::shared_ptr<const Manifest> manifest;
};
SavedWorld save_world(RunMachine& machine, const std::vector<RunRank>& ranks);

struct LoadOutcome {
  std::optional<Result<LoadReceipt>> receipt;
  std::uint64_t staging_peak_bytes = 0;
};

// What goes wrong between the ranks of a load.
struct ExchangeFault {
  std::optional<std::size_t> stalled;  // nothing reaches this rank
  std::optional<std::size_t> damaged;  // the next bytes that reach this rank are not those that were sent
};

// Plans and runs a load of `targets` with equal budgets; ends when everything is at rest. A plan that is refused fails
// the test.
std::vector<LoadOutcome> run_loads(RunMachine& machine, const SavedWorld& saved, const std::vector<RunRank>& targets,
                                   std::uint64_t budget_bytes, const LoadOptions& options = {},
                                   const ExchangeFault& fault = {});

}  // namespace vckpt
