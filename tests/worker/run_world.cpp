#include "tests/worker/run_world.h"

#include <algorithm>
#include <random>
#include <tuple>

#include "coordinator/planner/load_planner.h"
#include "coordinator/planner/save_planner.h"
#include "schema/names.h"
#include "tests/support/catch.h"
#include "tests/support/memory_transport.h"
#include "worker/load_run.h"
#include "worker/save_run.h"

namespace vckpt {

std::vector<std::byte> content(const TensorSpec& spec, const Box& box) {
  const Box bytes = to_byte_box(spec, box);
  const Dims shape = to_byte_shape(spec);
  const std::uint64_t salt = spec.fqn.size() * 131 + static_cast<unsigned char>(spec.fqn.back());
  std::vector<std::byte> packed;
  packed.reserve(elements(bytes));
  const std::uint64_t row_bytes = bytes.sizes.back();
  const std::uint64_t rows = row_bytes == 0 ? 0 : elements(bytes) / row_bytes;
  Dims point = bytes.offsets;
  for (std::uint64_t row = 0; row < rows; ++row) {
    std::uint64_t index = 0;
    for (std::size_t d = 0; d < point.size(); ++d) index = index * shape[d] + point[d];
    for (const std::uint64_t end = index + row_bytes; index < end; ++index) {
      packed.push_back(static_cast<std::byte>(((index + 1) * 0x9E3779B97F4A7C15 + salt) >> 53));
    }
    for (std::size_t d = point.size() - 1; d-- > 0;) {
      if (++point[d] < bytes.offsets[d] + bytes.sizes[d]) break;
      point[d] = bytes.offsets[d];
    }
  }
  return packed;
}

namespace {

std::vector<std::byte> content(const HeldMemory& held) {
  auto packed = content(held.spec, held.box);
  if (!held.range) return packed;
  const auto begin = static_cast<std::ptrdiff_t>(held.range->begin * bits(held.spec.dtype) / 8);
  const auto end = static_cast<std::ptrdiff_t>(held.range->end * bits(held.spec.dtype) / 8);
  return {packed.begin() + begin, packed.begin() + end};
}

struct Process {
  ProcessClock clock;
  VirtualCompute compute;
  Arena arena;
  MemoryStorage storage;
  Process(RunMachine& machine, std::uint64_t budget)
      : clock(machine.clock), compute(clock), arena(budget), storage(clock, machine.disk) {}
};

}  // namespace

HeldMemory& RunRank::hold(const std::string& section, const TensorSpec& spec, const Box& box,
                          std::optional<Range> range) {
  held.push_back(std::make_unique<HeldMemory>(HeldMemory{spec, box, range, {}}));
  HeldMemory& memory = *held.back();
  memory.bytes = content(memory);
  void* data = memory.bytes.empty() ? nullptr : memory.bytes.data();
  if (range) {
    state.section(section).add(spec, box, *range, data);
  } else {
    state.section(section).add(spec, box, data);
  }
  return memory;
}

void RunRank::fill() {
  for (auto& memory : held) {
    const auto bytes = content(*memory);
    std::copy(bytes.begin(), bytes.end(), memory->bytes.begin());
  }
}

void RunRank::fill(std::byte value) {
  for (auto& memory : held) std::fill(memory->bytes.begin(), memory->bytes.end(), value);
}

std::vector<std::string> RunRank::differences() const {
  std::vector<std::string> names;
  for (const auto& memory : held) {
    if (memory->bytes != content(*memory)) names.push_back(memory->spec.fqn + " " + to_string(memory->box));
  }
  return names;
}

void RunRank::seal() {
  auto made = make_tensor_table(state, nullptr);
  if (!made) FAIL(made.error().message);
  table = std::make_shared<const TensorTable>(*std::move(made));
}

std::vector<RunRank> mixed_ranks(std::uint32_t ranks, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<RunRank> all(ranks);
  const auto shape = [&](std::uint64_t max) { return 1 + random() % max; };
  const TensorSpec rows{"layers.rows", DType::bf16, {shape(900), 37}};
  const TensorSpec columns{"layers.columns", DType::f32, {61, 1 + shape(400)}};
  const TensorSpec norm{"norm", DType::f64, {shape(5000)}};
  const TensorSpec scalar{"scale", DType::f32, {}};
  const TensorSpec packed{"packed", DType::i4, {33, 10}};
  const TensorSpec flat{"moment", DType::f32, {13, 17, 1 + shape(60)}};
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    auto& mine = all[rank];
    mine.hold("model", rows, cut(whole(rows.shape), 0, ranks, rank));
    mine.hold("model", columns, cut(whole(columns.shape), 1, ranks, rank));
    mine.hold("model", norm, whole(norm.shape));
    mine.hold("extra", scalar, Box{});
    mine.hold("extra", packed, whole(packed.shape));
    const std::uint64_t count = elements(whole(flat.shape));
    mine.hold("optimizer", flat, whole(flat.shape), Range{count * rank / ranks, count * (rank + 1) / ranks});
    mine.seal();
  }
  return all;
}

namespace {

std::vector<SectionPlacement> placements(const std::vector<RunRank>& ranks) {
  std::vector<SectionPlacement> sections;
  for (const auto& section : ranks[0].table->sections) {
    SectionPlacement placement{section.section, {}};
    for (const auto& rank : ranks) placement.placement.layouts.push_back(rank.table->find(section.section)->layout);
    sections.push_back(std::move(placement));
  }
  return sections;
}

}  // namespace

std::shared_ptr<const SavePlan> plan_of(const std::vector<RunRank>& ranks) {
  auto planned = plan_save(placements(ranks), 8192);
  if (!planned) FAIL(planned.error().message);
  return planned->plan;
}

std::shared_ptr<const SaveSlice> slice_of(const SavePlan& plan, Rank rank) {
  auto slice = std::make_shared<SaveSlice>();
  slice->id = test_id;
  for (const auto& section : plan.sections) {
    SectionSlice part{section.section, section.tensors, {}};
    for (const auto& placed : file_pieces(section, rank)) part.pieces.push_back({placed.tensor, placed.box});
    slice->sections.push_back(std::move(part));
  }
  return slice;
}

std::vector<std::byte> expected_data(const SectionPlan& plan, Rank rank) {
  std::vector<std::byte> data;
  for (const auto& piece : file_pieces(plan, rank)) {
    const auto bytes = content(plan.tensors[piece.tensor], piece.box);
    data.insert(data.end(), bytes.begin(), bytes.end());
  }
  return data;
}

std::vector<SaveOutcome> run_saves(RunMachine& machine, const std::vector<RunRank>& ranks, const SavePlan& plan,
                                   std::uint64_t budget_bytes, OverBudget over_budget,
                                   const std::function<void(std::size_t)>& at_staged) {
  std::vector<std::unique_ptr<Process>> processes;
  std::vector<SaveOutcome> outcomes(ranks.size());
  std::vector<std::shared_ptr<SaveRun>> runs;
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    auto& process = *processes.emplace_back(std::make_unique<Process>(machine, budget_bytes));
    const auto id = Rank{static_cast<std::uint32_t>(rank)};
    SaveOutcome& outcome = outcomes[rank];
    SaveRun::Callbacks callbacks;
    callbacks.staged = [&, rank] {
      outcome.staged = true;
      if (at_staged) at_staged(rank);
    };
    callbacks.moved = [](Phase, std::uint64_t) {};
    callbacks.ended = [&](Result<std::vector<FileRecord>> files) {
      if (outcome.files) FAIL("a run ended twice");
      outcome.staged_before_ended = outcome.staged;
      outcome.files = std::move(files);
    };
    callbacks.freed = [] {};
    SaveRun::Task task{slice_of(plan, id), ranks[rank].table, id, over_budget};
    for (const auto& section : plan.sections) {
      process.storage.create_folder(names::rank_folder({test_id, section.section, id, 0}), [](Result<void>) {});
    }
    runs.push_back(
        std::make_shared<SaveRun>(process.storage, process.compute, process.arena, std::move(task), callbacks));
  }
  while (machine.clock.run_next()) {
  }
  for (auto& run : runs) run->start();
  while (machine.clock.run_next()) {
  }
  runs.clear();
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    outcomes[rank].staging_peak_bytes = processes[rank]->arena.peak_bytes();
    CHECK(processes[rank]->arena.leased_bytes() == 0);
  }
  return outcomes;
}

SavedWorld save_world(RunMachine& machine, const std::vector<RunRank>& ranks) {
  SavedWorld saved;
  saved.plan = plan_of(ranks);
  auto manifest = std::make_shared<Manifest>();
  manifest->id = test_id;
  manifest->plan = Digest{{std::byte{1}}};
  manifest->world_size = static_cast<std::uint32_t>(ranks.size());
  for (const auto& outcome : run_saves(machine, ranks, *saved.plan, 1 << 30)) {
    const auto& files = outcome.files->value();
    manifest->files.insert(manifest->files.end(), files.begin(), files.end());
  }
  std::sort(manifest->files.begin(), manifest->files.end(), [](const FileRecord& a, const FileRecord& b) {
    return std::tie(a.section, a.rank) < std::tie(b.section, b.rank);
  });
  saved.manifest = manifest;
  return saved;
}

std::vector<LoadOutcome> run_loads(RunMachine& machine, const SavedWorld& saved, const std::vector<RunRank>& targets,
                                   std::uint64_t budget_bytes, const LoadOptions& options, const ExchangeFault& fault) {
  LoadRequest request{placements(targets), {}, {}, options};
  request.items.resize(targets.size());
  request.staging_bytes.assign(targets.size(), budget_bytes);
  auto planned = plan_load({saved.plan, saved.manifest}, request);
  if (!planned) FAIL(planned.error().message);

  struct LoadProcess {
    Process process;
    MemoryTransport transport;
    LoadProcess(RunMachine& machine, MemoryNetwork& network, std::uint64_t budget)
        : process(machine, budget), transport(network, process.clock) {}
  };
  MemoryNetwork network(machine.clock, {.seed = 7});
  std::vector<std::unique_ptr<LoadProcess>> processes;
  std::vector<Peer> peers;
  std::vector<LoadOutcome> outcomes(targets.size());
  std::vector<std::shared_ptr<LoadRun>> runs;
  for (std::uint32_t rank = 0; rank < targets.size(); ++rank) {
    processes.push_back(std::make_unique<LoadProcess>(machine, network, budget_bytes));
    peers.push_back({Rank{rank}, "host", processes[rank]->transport.address(), Incarnation{rank + 1}});
  }
  if (fault.stalled) network.stall(peers[*fault.stalled].transport_address);
  if (fault.damaged) network.damage_next(peers[*fault.damaged].transport_address);
  for (std::uint32_t rank = 0; rank < targets.size(); ++rank) {
    auto& mine = *processes[rank];
    mine.transport.begin(Rank{rank}, peers, 1);
    LoadRun::Callbacks callbacks;
    callbacks.moved = [](Phase, std::uint64_t) {};
    callbacks.freed = [] {};
    callbacks.ended = [&, rank](Result<LoadReceipt> receipt) {
      if (outcomes[rank].receipt) FAIL("a run ended twice");
      const bool failed = !receipt;
      outcomes[rank].receipt = std::move(receipt);
      if (!failed) return;
      // As the coordinator does: one failure ends the load for all.
      for (auto& run : runs) machine.clock.post([run] { run->stop(); });
    };
    LoadRun::Task task{std::make_shared<const LoadSlice>(planned->slices[rank]), targets[rank].table, Rank{rank},
                       std::chrono::seconds(5)};
    runs.push_back(std::make_shared<LoadRun>(
        LoadRun::Seams{mine.process.storage, mine.transport, mine.process.compute, mine.process.arena}, std::move(task),
        callbacks));
  }
  for (auto& run : runs) run->start();
  while (machine.clock.run_next()) {
  }
  runs.clear();
  for (std::size_t rank = 0; rank < targets.size(); ++rank) {
    outcomes[rank].staging_peak_bytes = processes[rank]->process.arena.peak_bytes();
    CHECK(processes[rank]->process.arena.leased_bytes() == 0);
  }
  processes.clear();
  while (machine.clock.run_next()) {  // farewells, before their network goes
  }
  return outcomes;
}

}  // namespace vckpt
