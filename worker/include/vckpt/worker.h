// vckpt for C++ trainers: one Worker in every rank describes the state it holds, saves it and loads it. No exception
// crosses this header, and no third-party type appears in it.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "schema/item.h"
#include "schema/layout.h"
#include "schema/options.h"
#include "schema/report.h"
#include "schema/result.h"

namespace vckpt {

enum class Device : std::uint8_t { cpu = 0 };

// Where the elements of a held piece lie. `strides` count elements, one per dimension of the box; empty: row-major,
// dense. For a Range the memory holds its elements back to back and strides must be empty. `data` may be null only for
// nothing.
struct Memory {
  void* data = nullptr;
  std::vector<std::int64_t> strides;
  Device device = Device::cpu;

  Memory() = default;
  Memory(void* pointer) : data(pointer) {}  // NOLINT: a pointer is the common case
  Memory(void* pointer, std::vector<std::int64_t> element_strides)
      : data(pointer), strides(std::move(element_strides)) {}
};

// One top-level part of the state. Nothing is copied: memory must stay valid while a save is being staged or a load
// runs. Mistakes (a box outside of the tensor, one name with two shapes) are reported by save and load, naming the fqn.
class SectionState {
 public:
  SectionState& add(TensorSpec spec, Box box, Memory memory);
  SectionState& add(TensorSpec spec, Box box, Range range, Memory memory);
  // The piece that `cuts` leave at the section's coordinates: ranks that differ only in coordinates share one
  // description.
  SectionState& add(TensorSpec spec, std::vector<Cut> cuts, Memory memory);
  SectionState& add(TensorSpec spec, std::vector<Cut> cuts, Range range, Memory memory);
  // Coordinates of this rank, one per slot that cuts name.
  SectionState& at(Coordinates coordinates);
  // A non-tensor value. On load it is replaced by what was stored.
  SectionState& item(std::string name, Value value, Scope scope = Scope::replicated);
  const Value* find_item(std::string_view name) const;

  struct Contents;
  const Contents& contents() const { return *contents_; }
  Contents& contents() { return *contents_; }

  SectionState();
  ~SectionState();
  SectionState(SectionState&&) noexcept;
  SectionState& operator=(SectionState&&) noexcept;

 private:
  std::unique_ptr<Contents> contents_;
};

// What this rank holds: sections, by name.
class State {
 public:
  // The section of this name, made when missing; the reference stays valid as long as the State.
  SectionState& section(std::string_view name);
  std::vector<std::string> sections() const;
  const SectionState* find(std::string_view name) const;

  State();
  ~State();
  State(State&&) noexcept;
  State& operator=(State&&) noexcept;

 private:
  struct Sections;
  std::unique_ptr<Sections> sections_;
};

struct ConnectOptions {
  std::uint32_t rank = 0;
  std::uint32_t world_size = 1;
  std::string coordinator;  // `tcp://host:port`; empty with world_size 1: no server is needed
  std::string root;
  std::string run;                  // world_size 1: the run's name; otherwise the coordinator knows it
  std::string session;              // launcher's id and restart count; empty: the session that is forming
  std::uint64_t staging_bytes = 0;  // of this rank; 0: the owned bytes, at most half of the free memory per rank
  std::chrono::milliseconds deadline = std::chrono::seconds(120);  // a wait ends when nothing has moved for so long
};

// A save that has begun. Copyable handle; outliving the Worker is fine.
class Save {
 public:
  Step step() const;
  // Known once the plan is; otherwise nothing.
  std::optional<CheckpointId> id() const;
  bool done() const;
  // Until the state may be changed again. save() has waited for it already.
  Result<void> wait_staged(std::chrono::milliseconds deadline);
  // Until it is committed, or failed: the error says who and when. `unavailable` when `deadline` ends first; the save
  // goes on.
  Result<Report> wait_committed(std::chrono::milliseconds deadline);

  struct Shared;
  explicit Save(std::shared_ptr<Shared> shared) : shared_(std::move(shared)) {}

 private:
  std::shared_ptr<Shared> shared_;
};

struct LoadResult {
  CheckpointId id;
  std::vector<std::string> missing;     // `section:fqn`, wanted and not stored
  std::vector<std::string> unexpected;  // stored and not wanted
  std::string meta;
  Report report;
};

// Threading: save, load and close from one thread at a time; Save handles from any.
class Worker {
 public:
  // Joins the session; returns when all its ranks have.
  static Result<std::unique_ptr<Worker>> connect(const ConnectOptions& options);
  // Leaves without waiting for peers; what is not committed by then fails on the other ranks too.
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  // Called by all ranks, in the same order. Returns when `state` may be changed again.
  Result<Save> save(Step step, const State& state, const SaveOptions& options = {});
  // Called by all ranks. Fills the memory that `state` names, in place; nothing when there is no checkpoint yet and the
  // newest was asked for. After an error the content of the memory is undefined.
  Result<std::optional<LoadResult>> load(const Selector& selector, State& state, const LoadOptions& options = {});
  // Waits until all that was begun has ended, then leaves.
  Result<void> close();

  struct Runtime;

 private:
  explicit Worker(std::unique_ptr<Runtime> runtime);
  std::unique_ptr<Runtime> runtime_;
};

}  // namespace vckpt
