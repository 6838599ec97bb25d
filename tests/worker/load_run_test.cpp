#include "worker/load_run.h"

#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "schema/digest.h"
#include "schema/names.h"
#include "tests/support/catch.h"
#include "tests/worker/run_world.h"

namespace vckpt {
namespace {

constexpr std::uint64_t plenty = 1 << 30;

void check_loaded(const std::vector<RunRank>& targets, const std::vector<LoadOutcome>& outcomes) {
  for (std::size_t rank = 0; rank < targets.size(); ++rank) {
    CAPTURE(rank);
    REQUIRE(outcomes[rank].receipt.has_value());
    if (!outcomes[rank].receipt->has_value()) FAIL(outcomes[rank].receipt->error().message);
    CHECK(targets[rank].differences().empty());
  }
}

std::uint64_t chunked_bytes(const MemoryDisk& disk) {
  std::uint64_t bytes = 0;
  for (const auto& name : disk.files()) bytes += disk.contents(name)->size();
  return bytes;
}

TEST_CASE("every number of ranks loads what any other has saved, in the budget", "[load_run]") {
  const std::uint64_t seed = GENERATE(range(1, 4));
  for (std::uint32_t sources = 1; sources <= 4; ++sources) {
    RunMachine machine(DiskOptions{.seed = seed});
    const auto saved = save_world(machine, mixed_ranks(sources, seed));
    for (std::uint32_t count = 1; count <= 4; ++count) {
      CAPTURE(seed, sources, count);
      auto targets = mixed_ranks(count, seed);
      for (auto& target : targets) target.fill(std::byte{0xCD});
      const auto outcomes = run_loads(machine, saved, targets, plenty);
      check_loaded(targets, outcomes);
      std::uint64_t read = 0;
      std::uint64_t headers = 0;
      for (const auto& outcome : outcomes) read += (*outcome.receipt)->storage_bytes_read;
      for (const auto& file : saved.manifest->files) headers += file.header_bytes;
      CHECK(read == chunked_bytes(machine.disk) - headers);
    }
  }
}

TEST_CASE("a load of many chunks goes in rounds within the budget", "[load_run]") {
  const auto make = [](std::uint32_t ranks, std::uint32_t dim) {
    std::vector<RunRank> all(ranks);
    const TensorSpec big{"big", DType::f32, {1500, 700}};
    const TensorSpec odd{"odd", DType::u8, {3'156'789}};
    for (std::uint32_t rank = 0; rank < ranks; ++rank) {
      all[rank].hold("model", big, cut(whole(big.shape), dim, ranks, rank));
      all[rank].hold("model", odd, cut(whole(odd.shape), 0, ranks, rank));
      all[rank].seal();
    }
    return all;
  };
  RunMachine machine(DiskOptions{.seed = 3});
  const auto saved = save_world(machine, make(2, 0));
  auto targets = make(3, 1);
  for (auto& target : targets) target.fill(std::byte{0xCD});
  constexpr std::uint64_t budget = 3 << 20;  // two chunks, and what is packed of them
  const auto outcomes = run_loads(machine, saved, targets, budget);
  check_loaded(targets, outcomes);
  for (const auto& outcome : outcomes) {
    CHECK(outcome.staging_peak_bytes <= budget);
    CHECK(outcome.staging_peak_bytes > 0);
  }
}

// Its rounds end where they are posted: nobody else's bytes come later and set the next ones going.
TEST_CASE("a lone rank goes through all rounds, however few of them its budget holds", "[load_run]") {
  const TensorSpec big{"big", DType::u8, {5'000'000}};
  RunRank lone;
  lone.hold("model", big, whole(big.shape));
  lone.seal();
  std::vector<RunRank> ranks;
  ranks.push_back(std::move(lone));
  for (std::uint64_t seed = 1; seed <= 2; ++seed) {
    for (const std::uint64_t budget : {1 << 20, 3 << 20}) {
      CAPTURE(seed, budget);
      RunMachine machine(DiskOptions{.seed = seed});
      const auto saved = save_world(machine, ranks);
      ranks[0].fill(std::byte{0xCD});
      check_loaded(ranks, run_loads(machine, saved, ranks, budget));
    }
  }
}

TEST_CASE("what replicas want is packed once, whatever their number", "[load_run]") {
  const TensorSpec big{"big", DType::u8, {3'000'000}};
  const auto make = [&](std::uint32_t count) {
    std::vector<RunRank> ranks(count);
    for (auto& rank : ranks) {
      rank.hold("model", big, whole(big.shape));
      rank.seal();
    }
    return ranks;
  };
  RunMachine machine(DiskOptions{.seed = 4});
  const auto saved = save_world(machine, make(2));
  auto targets = make(7);
  for (auto& target : targets) target.fill(std::byte{0xCD});
  constexpr std::uint64_t budget = 2 << 20;  // a chunk, and one copy of it
  const auto outcomes = run_loads(machine, saved, targets, budget);
  check_loaded(targets, outcomes);
  for (const auto& outcome : outcomes) CHECK(outcome.staging_peak_bytes <= budget);
}

TEST_CASE("any flipped bit is found and named, whoever reads it", "[load_run]") {
  std::mt19937_64 random(99);
  const auto sources = mixed_ranks(3, 21);
  for (int i = 0; i < 25; ++i) {
    RunMachine machine(DiskOptions{.seed = 5});
    const auto saved = save_world(machine, sources);
    const auto& file = saved.manifest->files[random() % saved.manifest->files.size()];
    const FilePlace place{test_id, file.section, file.rank, file.index};
    const std::uint64_t at = random() % file.data_bytes;
    const auto bit = static_cast<unsigned>(random() % 8);
    CAPTURE(i, names::data_file(place), at, bit);
    REQUIRE(machine.disk.flip_bit(names::data_file(place), file.header_bytes + at, bit));
    auto targets = mixed_ranks(2, 21);
    const auto outcomes = run_loads(machine, saved, targets, plenty);
    int found = 0;
    for (const auto& outcome : outcomes) {
      REQUIRE(outcome.receipt.has_value());
      REQUIRE_FALSE(outcome.receipt->has_value());
      const Error& error = outcome.receipt->error();
      if (error.code != Code::corrupt) continue;
      ++found;
      CAPTURE(error.message);
      for (const auto& word :
           {"section '" + file.section + "'", std::string("tensor '"), std::string("box "), names::data_file(place),
            "chunk " + std::to_string(at / chunk_bytes), std::string("rank ")}) {
        CHECK(error.message.find(word) != std::string::npos);
      }
    }
    CHECK(found == 1);
  }
}

TEST_CASE("a file that ends early is corrupt, by name", "[load_run]") {
  RunMachine machine(DiskOptions{.seed = 5});
  auto saved = save_world(machine, mixed_ranks(1, 2));
  auto longer = std::make_shared<Manifest>(*saved.manifest);
  for (auto& file : longer->files) file.header_bytes += 8192;  // as if 8 KiB were cut off at the end
  saved.manifest = longer;
  const auto targets = mixed_ranks(1, 2);
  const auto outcomes = run_loads(machine, saved, targets, plenty);
  REQUIRE_FALSE(outcomes[0].receipt->has_value());
  CHECK(outcomes[0].receipt->error().code == Code::corrupt);
  CHECK(outcomes[0].receipt->error().message.find("tensor '") != std::string::npos);
}

int failures(const std::vector<LoadOutcome>& outcomes) {
  int failed = 0;
  for (const auto& outcome : outcomes) {
    REQUIRE(outcome.receipt.has_value());
    failed += outcome.receipt->has_value() ? 0 : 1;
  }
  return failed;
}

TEST_CASE("a failure of any read ends the load", "[load_run]") {
  RunMachine machine(DiskOptions{.seed = 2});
  const auto saved = save_world(machine, mixed_ranks(3, 8));
  int fired = 0;
  for (std::uint64_t k = 0; k < 1000; ++k) {
    CAPTURE(k);
    auto targets = mixed_ranks(2, 8);
    machine.disk.clear_faults();
    const auto before = machine.disk.faults_fired();
    machine.disk.fail_call(k, Code::unavailable);
    const auto outcomes = run_loads(machine, saved, targets, 256 * 1024);
    if (machine.disk.faults_fired() == before) {
      check_loaded(targets, outcomes);
      break;
    }
    ++fired;
    CHECK(failures(outcomes) >= 1);
  }
  CHECK(fired > 5);
}

TEST_CASE("a peer that is cut off, or bytes damaged on their way, end the load", "[load_run]") {
  RunMachine machine(DiskOptions{.seed = 2});
  const auto saved = save_world(machine, mixed_ranks(3, 8));
  const auto wanted = mixed_ranks(2, 8);
  for (std::size_t rank = 0; rank < 2; ++rank) {
    CAPTURE(rank);
    CHECK(failures(run_loads(machine, saved, wanted, 256 * 1024, {}, {.stalled = rank, .damaged = {}})) == 2);
    CHECK(failures(run_loads(machine, saved, wanted, 256 * 1024, {}, {.stalled = {}, .damaged = rank})) >= 1);
  }
  CHECK(failures(run_loads(machine, saved, wanted, 256 * 1024)) == 0);
}

std::vector<RunRank> one_tensor(std::uint32_t ranks, const TensorSpec& spec, std::uint32_t dim) {
  std::vector<RunRank> all(ranks);
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    all[rank].hold("model", spec, cut(whole(spec.shape), dim, ranks, rank));
    all[rank].seal();
  }
  return all;
}

TEST_CASE("types are cast on the way when asked, own bytes and received ones", "[load_run]") {
  const TensorSpec stored{"w", DType::f32, {40, 30}};
  const TensorSpec wanted{"w", DType::f64, {40, 30}};
  auto sources = one_tensor(2, stored, 0);
  for (std::size_t rank = 0; rank < 2; ++rank) {
    auto* values = reinterpret_cast<float*>(sources[rank].held[0]->bytes.data());
    for (std::size_t i = 0; i < 600; ++i) values[i] = static_cast<float>(rank * 600 + i) / 8;
  }
  RunMachine machine(DiskOptions{.seed = 2});
  const auto saved = save_world(machine, sources);
  const auto targets = one_tensor(3, wanted, 1);
  LoadOptions options;
  options.cast = true;
  const auto outcomes = run_loads(machine, saved, targets, plenty, options);
  for (std::size_t rank = 0; rank < 3; ++rank) {
    CAPTURE(rank);
    REQUIRE(outcomes[rank].receipt->has_value());
    const auto* values = reinterpret_cast<const double*>(targets[rank].held[0]->bytes.data());
    bool equal = true;
    for (std::size_t row = 0; row < 40; ++row) {
      for (std::size_t column = 0; column < 10; ++column) {
        const auto index = static_cast<double>(row * 30 + rank * 10 + column);
        equal = equal && values[row * 10 + column] == index / 8;
      }
    }
    CHECK(equal);
  }
}

TEST_CASE("casts that lose more than precision are refused", "[load_run]") {
  RunMachine machine(DiskOptions{.seed = 2});
  const auto saved = save_world(machine, one_tensor(1, {"w", DType::f32, {4}}, 0));
  const auto targets = one_tensor(1, {"w", DType::i32, {4}}, 0);
  LoadOptions options;
  options.cast = true;
  const auto outcomes = run_loads(machine, saved, targets, plenty, options);
  REQUIRE_FALSE(outcomes[0].receipt->has_value());
  CHECK(outcomes[0].receipt->error().code == Code::invalid);
  CHECK(outcomes[0].receipt->error().message.find("cannot cast f32 to i32") != std::string::npos);
}

TEST_CASE("resized tensors get the common box, the rest is zero or kept", "[load_run]") {
  const auto outside = GENERATE(Outside::zero, Outside::keep);
  const TensorSpec stored{"w", DType::u8, {6, 5}};
  RunMachine machine(DiskOptions{.seed = 2});
  const auto saved = save_world(machine, one_tensor(2, stored, 0));
  auto targets = one_tensor(2, {"w", DType::u8, {8, 4}}, 0);
  for (auto& target : targets) target.fill(std::byte{0x77});
  LoadOptions options;
  options.resize = {{"w", outside}};
  const auto outcomes = run_loads(machine, saved, targets, plenty, options);
  const auto rest = outside == Outside::zero ? std::byte{0} : std::byte{0x77};
  const auto all = content(stored, whole(stored.shape));
  for (std::size_t rank = 0; rank < 2; ++rank) {
    REQUIRE(outcomes[rank].receipt->has_value());
    for (std::size_t row = 0; row < 4; ++row) {
      for (std::size_t column = 0; column < 4; ++column) {
        const std::size_t global_row = rank * 4 + row;
        CAPTURE(global_row, column);
        const auto expected = global_row < 6 ? all[global_row * 5 + column] : rest;
        CHECK(targets[rank].held[0]->bytes[row * 4 + column] == expected);
      }
    }
  }
}

}  // namespace
}  // namespace vckpt
