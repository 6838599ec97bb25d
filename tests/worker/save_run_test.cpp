#include "worker/save_run.h"

#include <string>
#include <vector>

#include "schema/digest.h"
#include "schema/names.h"
#include "schema/safetensors.h"
#include "tests/support/catch.h"
#include "tests/worker/run_world.h"

namespace vckpt {
namespace {

constexpr std::uint64_t plenty = 1 << 30;

std::uint64_t owned_bytes(const SavePlan& plan, Rank rank) {
  std::uint64_t bytes = 0;
  for (const auto& section : plan.sections) bytes += data_bytes(file_pieces(section, rank));
  return bytes;
}

// The file on the disk is what the plan says, and its record describes it.
void check_file(const MemoryDisk& disk, const SectionPlan& plan, const FileRecord& record) {
  const FilePlace place{test_id, record.section, record.rank, record.index};
  CAPTURE(names::data_file(place));
  const auto contents = disk.contents(names::data_file(place));
  REQUIRE(contents.has_value());
  REQUIRE(contents->size() == record.header_bytes + record.data_bytes);
  const std::span<const std::byte> all(*contents);
  const auto header = all.first(record.header_bytes);
  const auto data = all.subspan(record.header_bytes);
  CHECK(safetensors::parse(header, contents->size()).has_value());
  CHECK(record.header_digest == chunk_digest(place, header_chunk, header));
  const auto expected = expected_data(plan, record.rank);
  CHECK(std::equal(data.begin(), data.end(), expected.begin(), expected.end()));
  std::vector<std::uint32_t> digests;
  for (std::uint64_t at = 0; at < data.size(); at += chunk_bytes) {
    digests.push_back(chunk_digest(place, digests.size(), data.subspan(at, std::min(chunk_bytes, data.size() - at))));
  }
  CHECK(record.chunk_digests == digests);
}

void check_saved(const MemoryDisk& disk, const SavePlan& plan, const std::vector<SaveOutcome>& outcomes) {
  std::size_t files = 0;
  for (std::size_t rank = 0; rank < outcomes.size(); ++rank) {
    CAPTURE(rank);
    REQUIRE(outcomes[rank].files.has_value());
    if (!outcomes[rank].files->has_value()) FAIL(outcomes[rank].files->error().message);
    CHECK(outcomes[rank].staged_before_ended);
    for (const auto& record : **outcomes[rank].files) {
      ++files;
      for (const auto& section : plan.sections) {
        if (section.section == record.section) check_file(disk, section, record);
      }
    }
  }
  CHECK(disk.files().size() == files);
}

TEST_CASE("files and records are what the plan says, for every kind of store and budget", "[save_run]") {
  const std::uint64_t seed = GENERATE(range(1, 9));
  CAPTURE(seed);
  const auto ranks = mixed_ranks(1 + seed % 4, seed);
  const auto plan = plan_of(ranks);
  const std::uint64_t part = std::max<std::uint64_t>(owned_bytes(*plan, Rank{0}) / 8, 16 * 1024);
  for (const std::uint64_t budget : {plenty, part}) {
    CAPTURE(budget);
    RunMachine machine(DiskOptions{.seed = seed, .write_grain_bytes = seed % 2 == 0 ? 1U : 4096U});
    const auto outcomes = run_saves(machine, ranks, *plan, budget);
    check_saved(machine.disk, *plan, outcomes);
    for (const auto& outcome : outcomes) CHECK(outcome.staging_peak_bytes <= budget);
  }
  RunMachine machine(parts_options(seed));
  check_saved(machine.disk, *plan, run_saves(machine, ranks, *plan, plenty));
}

TEST_CASE("files of several blocks and chunks are written in waves within the budget", "[save_run]") {
  std::vector<RunRank> ranks(1);
  ranks[0].hold("model", {"big", DType::f32, {1300, 400}}, Box{{0, 0}, {1300, 400}});
  ranks[0].hold("model", {"odd", DType::u8, {1'345'677}}, Box{{0}, {1'345'677}});
  ranks[0].seal();
  const auto plan = plan_of(ranks);
  for (const std::uint64_t budget : {plenty, std::uint64_t{300'000}}) {
    RunMachine machine(DiskOptions{.seed = budget});
    const auto outcomes = run_saves(machine, ranks, *plan, budget);
    check_saved(machine.disk, *plan, outcomes);
    CHECK(outcomes[0].staging_peak_bytes <= budget);
  }
  RunMachine machine(parts_options(3));
  check_saved(machine.disk, *plan, run_saves(machine, ranks, *plan, 6 << 20));
}

TEST_CASE("what the caller changes after it was let go is not in the files", "[save_run]") {
  const bool waves = GENERATE(false, true);
  auto ranks = mixed_ranks(2, 5);
  const auto plan = plan_of(ranks);
  RunMachine machine(DiskOptions{.seed = 4});
  const std::uint64_t budget = waves ? 64 * 1024 : plenty;
  const auto outcomes = run_saves(machine, ranks, *plan, budget, OverBudget::wait,
                                  [&](std::size_t rank) { ranks[rank].fill(std::byte{0xEE}); });
  check_saved(machine.disk, *plan, outcomes);
}

TEST_CASE("a save above its budget fails as exhausted when it was told to", "[save_run]") {
  const auto ranks = mixed_ranks(1, 3);
  const auto plan = plan_of(ranks);
  RunMachine machine(DiskOptions{.seed = 4});
  const auto outcomes = run_saves(machine, ranks, *plan, 16 * 1024, OverBudget::fail);
  REQUIRE(outcomes[0].files.has_value());
  CHECK(outcomes[0].files->error().code == Code::exhausted);
  CHECK(outcomes[0].files->error().message.find("16384") != std::string::npos);
  CHECK(machine.disk.files().empty());
  // One page is the least that a block needs.
  const auto never = run_saves(machine, ranks, *plan, 100);
  CHECK(never[0].files->error().code == Code::exhausted);
}

TEST_CASE("a failure of any storage call ends the save with an error and leaves no unfinished file", "[save_run]") {
  const auto ranks = mixed_ranks(2, 11);
  const auto plan = plan_of(ranks);
  const bool waves = GENERATE(false, true);
  int fired = 0;
  for (std::uint64_t k = 0;; ++k) {
    CAPTURE(waves, k);
    RunMachine machine(DiskOptions{.seed = k});
    const std::uint64_t folder_calls = 2 * plan->sections.size();
    machine.disk.fail_call(k + folder_calls, Code::unavailable);
    const auto outcomes = run_saves(machine, ranks, *plan, waves ? 96 * 1024 : plenty);
    if (machine.disk.faults_fired() == 0) break;
    ++fired;
    int failed = 0;
    for (const auto& outcome : outcomes) {
      REQUIRE(outcome.files.has_value());
      if (outcome.files->has_value()) continue;
      ++failed;
      CHECK(outcome.files->error().code == Code::unavailable);
      CHECK(outcome.files->error().message.find("section '") == 0);
    }
    CHECK(failed == 1);
  }
  CHECK(fired > 10);
}

}  // namespace
}  // namespace vckpt
