// The public API over the real seams: one process, a temporary folder.
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "schema/dtype.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_folder.h"
#include "vckpt/worker.h"

namespace vckpt {
namespace {

using std::chrono::seconds;

ConnectOptions options_for(const std::string& root) {
  ConnectOptions options;
  options.root = root;
  options.run = "api";
  options.staging_bytes = 8 << 20;
  options.deadline = seconds(20);
  return options;
}

std::unique_ptr<Worker> connected(const ConnectOptions& options) {
  auto worker = Worker::connect(options);
  if (!worker) FAIL(worker.error().message);
  return *std::move(worker);
}

// A state with one tensor of every type, filled from a number.
struct Everything {
  std::vector<std::vector<std::uint8_t>> memories;
  State state;

  explicit Everything(std::uint8_t number) {
    for (std::uint8_t type = 1; type <= dtype_count; ++type) {
      const DType dtype = *dtype_from_number(type);
      const Dims shape{3, 16};
      auto& memory = memories.emplace_back(3 * 16 * bits(dtype) / 8);
      for (std::size_t i = 0; i < memory.size(); ++i) memory[i] = static_cast<std::uint8_t>(i * 7 + type + number);
      state.section("model").add({"t." + std::string(to_string(dtype)), dtype, shape}, whole(shape), memory.data());
    }
    auto& scalar = memories.emplace_back(4, number);
    state.section("optimizer").add({"step", DType::f32, {}}, Box{}, scalar.data());
    state.section("optimizer").add({"nothing", DType::f32, {0, 4}}, whole({0, 4}), nullptr);
    state.section("optimizer").item("epoch", Value{std::int64_t{number}});
  }
};

Report save_now(Worker& worker, std::uint64_t step, const State& state, const SaveOptions& options = {}) {
  auto saving = worker.save(Step{step}, state, options);
  if (!saving) FAIL(saving.error().message);
  auto report = saving->wait_committed(seconds(30));
  if (!report) FAIL(report.error().message);
  CHECK(saving->done());
  CHECK(saving->step() == Step{step});
  REQUIRE(saving->id().has_value());
  CHECK(saving->id()->step == Step{step});
  return *report;
}

TEST_CASE("one process saves and loads every type without a server", "[api]") {
  const TemporaryFolder folder;
  const Everything saved(1);
  {
    auto worker = connected(options_for(folder.path().string()));
    Everything fresh(9);
    const auto nothing = worker->load(newest, fresh.state);
    if (!nothing) FAIL(nothing.error().message);
    CHECK_FALSE(nothing->has_value());
    SaveOptions options;
    options.meta = "{\"loss\": 1}";
    const Report report = save_now(*worker, 100, saved.state, options);
    CHECK(report.bytes_written == report.unique_bytes);
    CHECK(report.ranks == 1);
    CHECK(report.durable_seconds > 0);
    CHECK(worker->close().has_value());
    CHECK(worker->close().has_value());
  }
  auto worker = connected(options_for(folder.path().string()));
  Everything loaded(2);
  auto result = worker->load(newest, loaded.state);
  if (!result) FAIL(result.error().message);
  REQUIRE(result->has_value());
  CHECK((*result)->id.step == Step{100});
  CHECK((*result)->meta == "{\"loss\": 1}");
  CHECK(loaded.memories == saved.memories);
  CHECK(*loaded.state.find("optimizer")->find_item("epoch") == Value{std::int64_t{1}});
  save_now(*worker, 200, loaded.state);
  Everything again(3);
  CHECK(worker->load(Step{100}, again.state).has_value());
  CHECK(again.memories == saved.memories);
  CHECK(worker->load(Step{7}, again.state).error().code == Code::not_found);
}

TEST_CASE("what changes after save returns is not saved, and several saves may be in flight", "[api]") {
  const TemporaryFolder folder;
  auto worker = connected(options_for(folder.path().string()));
  std::vector<std::uint32_t> memory(500'000);
  State state;
  state.section("model").add({"w", DType::u32, {memory.size()}}, whole({memory.size()}), memory.data());
  std::vector<Save> saves;
  for (std::uint32_t step = 1; step <= 4; ++step) {
    std::fill(memory.begin(), memory.end(), step);
    auto saving = worker->save(Step{step}, state);
    if (!saving) FAIL(saving.error().message);
    CHECK(saving->wait_staged(seconds(0)).has_value());
    saves.push_back(*saving);
    std::fill(memory.begin(), memory.end(), 99);
  }
  CHECK(worker->close().has_value());
  for (auto& saving : saves) CHECK(saving.wait_committed(seconds(0)).has_value());
  worker = connected(options_for(folder.path().string()));
  for (std::uint32_t step = 1; step <= 4; ++step) {
    CAPTURE(step);
    REQUIRE(worker->load(Step{step}, state).has_value());
    CHECK(std::count(memory.begin(), memory.end(), step) == static_cast<std::ptrdiff_t>(memory.size()));
  }
}

TEST_CASE("a budget of an eighth of the state is kept by save and load", "[api]") {
  const TemporaryFolder folder;
  auto options = options_for(folder.path().string());
  std::vector<std::uint64_t> memory(3 << 20);
  for (std::size_t i = 0; i < memory.size(); ++i) memory[i] = i * 3;
  const auto expected = memory;
  options.staging_bytes = memory.size() * 8 / 8;
  auto worker = connected(options);
  State state;
  state.section("model").add({"w", DType::u64, {memory.size()}}, whole({memory.size()}), memory.data());
  const Report report = save_now(*worker, 1, state);
  CHECK(report.staging_peak_bytes <= options.staging_bytes);
  CHECK(report.staging_peak_bytes > 0);
  std::fill(memory.begin(), memory.end(), 0);
  const auto loaded = worker->load(newest, state);
  if (!loaded) FAIL(loaded.error().message);
  CHECK(memory == expected);
  CHECK((*loaded)->report.staging_peak_bytes <= options.staging_bytes);
  CHECK((*loaded)->report.storage_bytes_read == memory.size() * 8);
  SaveOptions failing;
  failing.over_budget = OverBudget::fail;
  const auto refused = worker->save(Step{2}, state, failing);
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().code == Code::exhausted);
  save_now(*worker, 3, state);
}

TEST_CASE("mistakes are answered with what is wrong, and the worker goes on", "[api]") {
  const TemporaryFolder folder;
  auto worker = connected(options_for(folder.path().string()));
  std::uint32_t memory[4] = {1, 2, 3, 4};
  State bad;
  bad.section("model").add({"layer.w", DType::u32, {4}}, Box{{2}, {4}}, memory);
  const auto refused = worker->save(Step{1}, bad);
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().code == Code::invalid);
  CHECK(refused.error().message.find("'layer.w'") != std::string::npos);
  CHECK(worker->load(newest, bad).error().code == Code::invalid);
  State gap;
  gap.section("model").add({"layer.w", DType::u32, {8}}, Box{{2}, {4}}, memory);
  CHECK(worker->save(Step{1}, gap).error().code == Code::invalid);
  State deep;
  Value nested;
  for (std::size_t i = 0; i < value_depth_max; ++i) nested = Value{Value::List{nested}};
  deep.section("model").item("steps", nested);
  const auto too_deep = worker->save(Step{1}, deep);
  REQUIRE_FALSE(too_deep.has_value());
  CHECK(too_deep.error().code == Code::invalid);
  CHECK(too_deep.error().message.find("item 'steps': nested deeper than 12 levels") != std::string::npos);
  SaveOptions chatty;
  chatty.meta = std::string(meta_bytes_max + 1, ' ');
  CHECK(worker->save(Step{1}, State(), chatty).error().message.find("meta has 1048577 bytes") != std::string::npos);
  State good;
  good.section("model").add({"layer.w", DType::u32, {4}}, Box{{0}, {4}}, memory);
  save_now(*worker, 1, good);
  State missing;
  missing.section("model").add({"layer.v", DType::u32, {4}}, Box{{0}, {4}}, memory);
  const auto absent = worker->load(newest, missing);
  REQUIRE_FALSE(absent.has_value());
  CHECK(absent.error().message.find("layer.v") != std::string::npos);
  CHECK(worker->close().has_value());
  CHECK(worker->save(Step{2}, good).error().code == Code::invalid);
  CHECK(worker->load(newest, good).error().code == Code::invalid);
}

TEST_CASE("connecting says what does not fit", "[api]") {
  const TemporaryFolder folder;
  const auto refuse = [&](auto change) {
    auto options = options_for(folder.path().string());
    change(options);
    auto worker = Worker::connect(options);
    REQUIRE_FALSE(worker.has_value());
    return worker.error();
  };
  CHECK(refuse([](auto& o) { o.world_size = 0; }).code == Code::invalid);
  CHECK(refuse([](auto& o) { o.rank = 1; }).message.find("rank 1 of 1") != std::string::npos);
  CHECK(refuse([](auto& o) { o.root = ""; }).code == Code::invalid);
  CHECK(refuse([](auto& o) { o.world_size = 2; }).message.find("no coordinator") != std::string::npos);
  CHECK(refuse([](auto& o) { o.coordinator = "head:17"; }).message.find("'head:17'") != std::string::npos);
  CHECK(refuse([](auto& o) { o.deadline = std::chrono::milliseconds(0); }).code == Code::invalid);
  const auto nobody = refuse([](auto& o) {
    o.world_size = 2;
    o.coordinator = "tcp://127.0.0.1:1";
    o.deadline = std::chrono::milliseconds(50);
  });
  CHECK(nobody.message.find("rank 0") != std::string::npos);
  std::ofstream((folder.path().string() + "/file")) << "not a folder";
  const auto file = refuse([&](auto& o) { o.root = (folder.path().string() + "/file"); });
  CHECK(file.message.find("file") != std::string::npos);
  connected(options_for(folder.path().string()));
  CHECK(refuse([](auto& o) { o.run = "another"; }).code == Code::invalid);
}

TEST_CASE("a flipped byte fails the load, and what it touched cannot be saved", "[api]") {
  const TemporaryFolder folder;
  auto worker = connected(options_for(folder.path().string()));
  std::vector<std::uint32_t> memory(1000, 5);
  State state;
  state.section("model").add({"w", DType::u32, {1000}}, whole({1000}), memory.data());
  save_now(*worker, 1, state);
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder.path())) {
    if (entry.path().extension() != ".safetensors") continue;
    std::fstream file(entry.path(), std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(-3, std::ios::end);
    file.put(77);
  }
  const auto loaded = worker->load(newest, state);
  REQUIRE_FALSE(loaded.has_value());
  CHECK(loaded.error().code == Code::corrupt);
  CHECK(loaded.error().message.find("tensor 'w'") != std::string::npos);
  const auto saving = worker->save(Step{2}, state);
  REQUIRE_FALSE(saving.has_value());
  CHECK(saving.error().code == Code::invalid);
  CHECK(saving.error().message.find("section 'model'") != std::string::npos);
}

TEST_CASE("a worker that is dropped leaves at once, its unfinished save fails", "[api]") {
  const TemporaryFolder folder;
  auto worker = connected(options_for(folder.path().string()));
  std::vector<std::uint32_t> memory(100'000, 5);
  State state;
  state.section("model").add({"w", DType::u32, {memory.size()}}, whole({memory.size()}), memory.data());
  auto saving = worker->save(Step{1}, state);
  REQUIRE(saving.has_value());
  worker.reset();
  REQUIRE(saving->done());
  const auto ended = saving->wait_committed(seconds(0));
  if (!ended) CHECK(ended.error().code == Code::aborted);
  // Whatever became of it, the root is whole.
  worker = connected(options_for(folder.path().string()));
  const auto loaded = worker->load(newest, state);
  if (!loaded) FAIL(loaded.error().message);
  if (ended) CHECK(loaded->has_value());
}

TEST_CASE("a forked child's handle is inert", "[api]") {
  const TemporaryFolder folder;
  auto worker = connected(options_for(folder.path().string()));
  State state;
  state.section("model");
  const pid_t child = ::fork();
  if (child == 0) {
    const bool inert = worker->save(Step{1}, state).error().code == Code::invalid;
    worker.reset();
    ::_exit(inert ? 0 : 1);
  }
  int status = -1;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK((WIFEXITED(status) && WEXITSTATUS(status) == 0));
}

}  // namespace
}  // namespace vckpt
