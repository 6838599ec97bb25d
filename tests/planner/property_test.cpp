// Random meshes, ranges and boxes against brute force. Every failure prints its seed.
#include <algorithm>
#include <memory>

#include "coordinator/planner/load_planner.h"
#include "coordinator/planner/save_planner.h"
#include "tests/planner/oracle.h"
#include "tests/planner/placements.h"
#include "tests/planner/random_placements.h"
#include "tests/support/catch.h"

namespace vckpt {
namespace {

// A manifest as a save would have left it: with a digest for every chunk and a plan that has one.
std::shared_ptr<const Manifest> written(const SavePlan& plan) {
  auto manifest = std::move(*expected_manifest(plan, CheckpointId{Epoch(1), Attempt(1), Step(1)}));
  manifest.plan.bytes[0] = std::byte{1};
  for (auto& file : manifest.files) file.chunk_digests.resize((file.data_bytes + (1 << 20) - 1) >> 20);
  return std::make_shared<const Manifest>(std::move(manifest));
}

TEST_CASE("covers are accepted exactly when brute force accepts them", "[planner][property]") {
  int accepted = 0;
  int refused = 0;
  for (std::uint64_t seed = 1; seed <= 600; ++seed) {
    Random random(seed);
    const auto tensors = random_tensors(random, 1 + below(random, 3));
    auto placement = random_placement(random, "s", tensors, 1 + static_cast<std::uint32_t>(below(random, 8)));
    if (below(random, 3) != 0) disturb(random, placement);
    const auto planned = plan_save({placement});
    INFO("seed " << seed << ": " << (planned ? std::string("accepted") : planned.error().message));
    REQUIRE(planned.has_value() == oracle::covers(placement));
    (planned ? accepted : refused) += 1;
    if (!planned) REQUIRE(planned.error().code == Code::invalid);
  }
  CHECK(accepted > 100);
  CHECK(refused > 100);
}

TEST_CASE("every element is persisted once, by a rank that holds it, within the bound", "[planner][property]") {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    Random random(seed * 7919);
    const auto world = 1 + static_cast<std::uint32_t>(below(random, 9));
    const auto model = random_placement(random, "model", random_tensors(random, 1 + below(random, 6)), world);
    const auto optimizer = random_placement(random, "optimizer", random_tensors(random, 1 + below(random, 6)), world);
    const auto planned = plan_save({model, optimizer});
    INFO("seed " << seed << (planned ? std::string() : planned.error().message));
    REQUIRE(planned.has_value());
    REQUIRE(oracle::wrong_with_plan({model, optimizer}, *planned->plan) == "");
    const auto manifest = expected_manifest(*planned->plan, CheckpointId{});
    REQUIRE(manifest.has_value());
    std::uint64_t recorded = 0;
    for (const auto& file : manifest->files) {
      const auto section = file.section == "model" ? 0 : 1;
      REQUIRE(file.data_bytes == data_bytes(file_pieces(planned->plan->sections[section], file.rank)));
      recorded += file.data_bytes;
    }
    REQUIRE(recorded == planned->balance.unique_bytes);
    const double bound = oracle::bound_bytes({model, optimizer});
    const auto bytes = loads(*planned->plan);
    REQUIRE(planned->balance.bound_bytes == Approx(bound).margin(1.0));
    REQUIRE(planned->balance.most_loaded_bytes == *std::max_element(bytes.begin(), bytes.end()));
    // The widest element has 16 bytes and cannot be cut.
    REQUIRE(static_cast<double>(planned->balance.most_loaded_bytes) <= 1.01 * bound + 16);
  }
}

LoadRequest request_for(std::vector<SectionPlacement> targets, std::uint64_t staging_bytes) {
  LoadRequest request;
  const std::size_t world = targets.front().placement.layouts.size();
  request.targets = std::move(targets);
  request.items.resize(world);
  request.staging_bytes.assign(world, staging_bytes);
  return request;
}

void check_load(const StoredCheckpoint& stored, const LoadRequest& request) {
  const auto planned = plan_load(stored, request);
  INFO((planned ? std::string() : planned.error().message));
  REQUIRE(planned.has_value());
  REQUIRE(oracle::wrong_with_load(stored, request, *planned) == "");
}

TEST_CASE("any small layout loads into any other", "[planner][property]") {
  for (std::uint64_t seed = 1; seed <= 250; ++seed) {
    INFO("seed " << seed);
    Random random(seed * 104729);
    const auto tensors = random_tensors(random, 1 + below(random, 6));
    const auto saved = random_placement(random, "s", tensors, 1 + static_cast<std::uint32_t>(below(random, 8)));
    const auto planned = plan_save({saved});
    REQUIRE(planned.has_value());
    const StoredCheckpoint stored{planned->plan, written(*planned->plan)};
    const auto wanted = random_placement(random, "s", tensors, 1 + static_cast<std::uint32_t>(below(random, 8)));
    check_load(stored, request_for({wanted}, 1 << 20));
  }
}

TEST_CASE("files of many chunks load in rounds that fit the budget", "[planner][property]") {
  const std::vector<TensorSpec> tensors{{"rows", DType::u8, {1500, 2000}},
                                        {"columns", DType::u8, {3, 1500000}},
                                        {"cube", DType::f32, {50, 60, 70}},
                                        {"norm", DType::bf16, {5000}},
                                        {"step", DType::f64, {}}};
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    INFO("seed " << seed);
    Random random(seed * 15485863);
    const auto saved = random_placement(random, "s", tensors, 1 + static_cast<std::uint32_t>(below(random, 6)));
    const auto planned = plan_save({saved});
    REQUIRE(planned.has_value());
    const StoredCheckpoint stored{planned->plan, written(*planned->plan)};
    const auto wanted = random_placement(random, "s", tensors, 1 + static_cast<std::uint32_t>(below(random, 6)));
    // One chunk, and a copy of it for each of at most five others.
    check_load(stored, request_for({wanted}, (std::uint64_t{7 + below(random, 30)} << 20)));
  }
}

}  // namespace
}  // namespace vckpt
