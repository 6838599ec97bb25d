// A coordinator that serves for weeks: what it holds of the system after a thousand saves is what it held after a few.
#include <poll.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <future>
#include <iterator>

#include "launch/child.h"
#include "tests/launch/program.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_folder.h"
#include "vckpt/worker.h"

namespace vckpt::testing {
namespace {

constexpr std::uint32_t ranks = 2;
constexpr std::chrono::seconds patience{60};
constexpr std::uint64_t growth_kib_max = 1024;  // an allocator's hesitation, over all saves

struct Footprint {
  std::size_t descriptors = 0;
  std::size_t threads = 0;
  std::uint64_t resident_kib = 0;
};

std::size_t entries(const std::filesystem::path& folder) {
  const auto begin = std::filesystem::directory_iterator(folder);
  return static_cast<std::size_t>(std::distance(begin, std::filesystem::directory_iterator()));
}

Footprint footprint(const std::string& process) {
  const auto folder = std::filesystem::path("/proc") / process;
  const auto status = launch::read_file((folder / "status").string());
  const auto at = status.find("VmRSS:");
  REQUIRE(at != std::string::npos);
  return {entries(folder / "fd"), entries(folder / "task"), std::strtoull(status.c_str() + at + 6, nullptr, 10)};
}

// A coordinator as a user starts it; its first line says its address.
struct RunningCoordinator {
  explicit RunningCoordinator(const std::string& root) {
    const auto beside = std::filesystem::path(launch::vckpt_program()).parent_path() / "vckpt-coordinator";
    // The sanitizer would keep what is freed for a while.
    auto started = launch::Child::start(
        {{beside.string(), "--root", root, "--ranks", std::to_string(ranks), "--deadline", "60"},
         {{"ASAN_OPTIONS", "quarantine_size_mb=0:thread_local_quarantine_size_kb=0"}, {"VCKPT_LOG", "error"}}});
    REQUIRE(started.has_value());
    child = *std::move(started);
    while (address.find('\n') == std::string::npos) {
      pollfd readable{child->output().number(), POLLIN, 0};
      REQUIRE(::poll(&readable, 1, 60'000) == 1);
      char byte = 0;
      REQUIRE(::read(child->output().number(), &byte, 1) == 1);
      address += byte;
    }
    address = address.substr(0, address.find_first_of(" \n"));
  }
  Footprint footprint() const { return testing::footprint(std::to_string(child->pid())); }

  std::unique_ptr<launch::Child> child;
  std::string address;
};

// One rank of a small job.
struct RankOfJob {
  RankOfJob(std::uint32_t rank, const std::string& root, const std::string& coordinator) : values(512) {
    ConnectOptions options;
    options.rank = rank;
    options.world_size = ranks;
    options.coordinator = coordinator;
    options.root = root;
    options.staging_bytes = 1 << 20;
    options.deadline = patience;
    connected = Worker::connect(options);
    state.section("model").add({"w", DType::f32, {ranks, 512}}, Box{{rank, 0}, {1, 512}}, values.data());
  }

  // Steps `first` and on; the first error.
  Result<void> save(std::uint64_t first, std::uint64_t count) {
    if (!connected) return connected.error();
    for (auto step = first; step < first + count; ++step) {
      values[step % values.size()] += 1;
      VCKPT_TRY(auto saving, (*connected)->save(Step{step}, state));
      VCKPT_TRY(const auto report, saving.wait_committed(patience));
      static_cast<void>(report);
    }
    return {};
  }

  std::vector<float> values;
  State state;
  Result<std::unique_ptr<Worker>> connected = internal("not connected yet");
};

// The same on all ranks at once.
template <typename Step>
auto on_ranks(Step step) {
  std::vector<std::future<decltype(step(0))>> running;
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    running.push_back(std::async(std::launch::async, [step, rank] { return step(rank); }));
  }
  std::vector<decltype(step(0))> done;
  for (auto& one : running) done.push_back(one.get());
  return done;
}

void save_all(std::vector<std::unique_ptr<RankOfJob>>& job, std::uint64_t first, std::uint64_t count) {
  for (const auto& saved : on_ranks([&](std::uint32_t rank) { return job[rank]->save(first, count); })) {
    INFO((saved ? std::string() : saved.error().message));
    REQUIRE(saved.has_value());
  }
}

}  // namespace

TEST_CASE("descriptors, threads and memory of a coordinator and its ranks stay flat over many saves") {
  const std::uint64_t warm_up = 50;
  const std::uint64_t saves = std::getenv("VCKPT_LONG_TESTS") != nullptr ? 1000 : 150;
  const TemporaryFolder folder;
  const auto root = folder.file("root");
  RunningCoordinator coordinator(root);
  auto job = on_ranks([&](std::uint32_t rank) { return std::make_unique<RankOfJob>(rank, root, coordinator.address); });
  save_all(job, 1, warm_up);
  const auto before = coordinator.footprint();
  const auto ours_before = footprint("self");
  save_all(job, warm_up + 1, saves);
  const auto after = coordinator.footprint();
  const auto ours_after = footprint("self");

  CHECK(after.descriptors == before.descriptors);
  CHECK(after.threads == before.threads);
  INFO("resident KiB: " << before.resident_kib << ", and " << after.resident_kib << " after " << saves << " saves");
  CHECK(after.resident_kib <= before.resident_kib + growth_kib_max);
  CHECK(ours_after.descriptors == ours_before.descriptors);
  CHECK(ours_after.threads == ours_before.threads);
  CHECK(entries(folder.path() / "root" / "decisions") == warm_up + saves);
  on_ranks([&](std::uint32_t rank) { return job[rank]->connected.value()->close().has_value(); });
}

}  // namespace vckpt::testing
