#include "coordinator/planner/save_planner.h"

#include <algorithm>
#include <numeric>

#include "tests/planner/placements.h"
#include "tests/support/catch.h"

namespace vckpt {
namespace {

constexpr std::uint64_t mib = 1 << 20;

PlannedSave plan(const std::vector<SectionPlacement>& sections) {
  auto planned = plan_save(sections);
  INFO((planned ? std::string() : planned.error().message));
  REQUIRE(planned.has_value());
  return std::move(*planned);
}

std::string refusal(const std::vector<SectionPlacement>& sections) {
  const auto planned = plan_save(sections);
  REQUIRE_FALSE(planned.has_value());
  CHECK(planned.error().code == Code::invalid);
  return planned.error().message;
}

bool holds(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

std::uint64_t sum(const std::vector<std::uint64_t>& bytes) {
  return std::accumulate(bytes.begin(), bytes.end(), std::uint64_t{0});
}

TEST_CASE("grids that their holders have alone stay grids", "[planner][save]") {
  const auto planned = plan({Mesh("model", {4, 2})
                                 .add({"w", DType::bf16, {64, 64}}, {{0, 0, 0}, {1, 0, 1}})
                                 .add({"v", DType::f32, {10, 8}}, {{0, 0, 0}, {0, 0, 1}})
                                 .placement()});
  const SectionPlan& section = planned.plan->sections.front();
  CHECK(section.bodies.size() == 1);
  for (const auto& rank : section.ranks) CHECK(rank.pieces.empty());
  CHECK(sum(loads(*planned.plan)) == planned.balance.unique_bytes);
  CHECK(planned.balance.unique_bytes == 64 * 64 * 2 + 10 * 8 * 4);
  CHECK(planned.balance.held_bytes == planned.balance.unique_bytes);
}

TEST_CASE("a replicated tensor is split evenly over its holders", "[planner][save]") {
  const auto planned = plan({Mesh("model", {8}).add({"w", DType::bf16, {4096, 4096}}).placement()});
  for (const auto bytes : loads(*planned.plan)) CHECK(bytes == 4 * mib);
  CHECK(planned.balance.pieces_written == 8);
  CHECK(planned.balance.distinct_pieces == 1);
  CHECK(planned.balance.descriptors == 8);
  CHECK(planned.balance.bound_bytes == Approx(4.0 * mib));
}

TEST_CASE("a row that is too large is cut into the next dimension", "[planner][save]") {
  const auto planned = plan({Mesh("model", {3}).add({"w", DType::u8, {2, 3000, 1000}}).placement()});
  CHECK(planned.balance.most_loaded_bytes <= 1.01 * planned.balance.bound_bytes);
  for (const auto& rank : planned.plan->sections.front().ranks) {
    for (const auto& piece : rank.pieces) CHECK(piece.box.sizes[2] == 1000);
  }
}

TEST_CASE("replicated tensors make up for what ranks hold alone", "[planner][save]") {
  Pieces pieces("model", 3);
  pieces.add(0, {"own", DType::u8, {3000}});
  for (std::uint32_t rank = 0; rank < 3; ++rank) pieces.add(rank, {"all", DType::u8, {6000}});
  const auto planned = plan({pieces.placement()});
  CHECK(planned.balance.bound_bytes == Approx(3000.0));
  CHECK(planned.balance.most_loaded_bytes <= 3030);
}

TEST_CASE("crossing holder sets reach the bound", "[planner][save]") {
  // Tied embeddings on the first and the last stage, norms on everybody, weights on two middle ones.
  Pieces pieces("model", 4);
  const auto on = [&](std::vector<std::uint32_t> ranks, const TensorSpec& spec) {
    for (const auto rank : ranks) pieces.add(rank, spec);
  };
  on({0, 3}, {"embed", DType::u8, {90000}});
  on({0, 1}, {"left", DType::u8, {60000}});
  on({1, 2, 3}, {"right", DType::u8, {30000}});
  const auto planned = plan({pieces.placement()});
  CHECK(planned.balance.bound_bytes == Approx(50000.0).margin(2));
  CHECK(static_cast<double>(planned.balance.most_loaded_bytes) <= 1.01 * planned.balance.bound_bytes);
}

TEST_CASE("sections are balanced together", "[planner][save]") {
  Pieces model("model", 2);
  model.add(0, {"w", DType::u8, {4000}});
  Pieces optimizer("optimizer", 2);
  optimizer.add(0, {"m", DType::u8, {4000}}).add(1, {"m", DType::u8, {4000}});
  const auto planned = plan({model.placement(), optimizer.placement()});
  CHECK(loads(*planned.plan) == std::vector<std::uint64_t>{4000, 4000});
}

TEST_CASE("ranges are written as boxes", "[planner][save]") {
  Pieces pieces("optimizer", 2);
  const TensorSpec spec{"m", DType::f32, {5, 3}};
  pieces.add(0, spec, {}, Range{0, 7}).add(1, spec, {}, Range{7, 15});
  const auto planned = plan({pieces.placement()});
  const auto& ranks = planned.plan->sections.front().ranks;
  CHECK(ranks[0].pieces == std::vector<Piece>{{0, Box{{0, 0}, {2, 3}}}, {0, Box{{2, 0}, {1, 1}}}});
  CHECK(ranks[1].pieces == std::vector<Piece>{{0, Box{{2, 1}, {1, 2}}}, {0, Box{{3, 0}, {2, 3}}}});
}

TEST_CASE("a gap names tensor, box and number of elements", "[planner][cover]") {
  const TensorSpec spec{"wq", DType::u8, {256, 256}};
  Pieces pieces("model", 2);
  pieces.add(0, spec, Box{{0, 0}, {64, 256}}).add(1, spec, Box{{64, 0}, {64, 256}});
  const auto message = refusal({pieces.placement()});
  CHECK(holds(message, "'wq'"));
  CHECK(holds(message, "[128, 256)x[0, 256)"));
  CHECK(holds(message, "32768"));
}

TEST_CASE("an overlap names tensor, ranks, boxes and number of elements", "[planner][cover]") {
  const TensorSpec spec{"w", DType::f32, {4, 4}};
  Pieces pieces("model", 4);
  pieces.add(1, spec).add(3, spec, Box{{1, 1}, {2, 2}});
  const auto message = refusal({pieces.placement()});
  CHECK(holds(message, "'w'"));
  CHECK(holds(message, "rank 1"));
  CHECK(holds(message, "rank 3"));
  CHECK(holds(message, "[1, 3)x[1, 3), 4 elements"));
}

TEST_CASE("ranks that disagree on a tensor are named", "[planner][cover]") {
  Pieces pieces("model", 3);
  pieces.add(0, {"w", DType::f32, {4}}).add(2, {"w", DType::bf16, {4}});
  const auto message = refusal({pieces.placement()});
  CHECK(holds(message, "rank 0"));
  CHECK(holds(message, "rank 2"));
  CHECK(holds(message, "bf16"));
}

TEST_CASE("one rank that gives one piece twice is refused", "[planner][cover]") {
  const TensorSpec spec{"w", DType::f32, {4}};
  Pieces pieces("model", 2);
  pieces.add(0, spec, Box{{0}, {2}}).add(1, spec, Box{{2}, {2}}).add(1, spec, Box{{2}, {2}});
  const auto message = refusal({pieces.placement()});
  CHECK(holds(message, "rank 1"));
  CHECK(holds(message, "twice"));
}

TEST_CASE("a tensor that is listed and held by nobody is a gap", "[planner][cover]") {
  Pieces pieces("model", 2);
  pieces.add(1, {"w", DType::f32, {4}}, Box{{0}, {0}});
  CHECK(holds(refusal({pieces.placement()}), "4 of 4 elements"));
}

TEST_CASE("pinwheels, empty pieces, scalars and tensors without elements are covers", "[planner][cover]") {
  const TensorSpec wheel{"wheel", DType::f32, {3, 3}};
  Pieces pieces("model", 5);
  pieces.add(0, wheel, Box{{0, 0}, {1, 2}})
      .add(1, wheel, Box{{0, 2}, {2, 1}})
      .add(2, wheel, Box{{2, 1}, {1, 2}})
      .add(3, wheel, Box{{1, 0}, {2, 1}})
      .add(4, wheel, Box{{1, 1}, {1, 1}});
  pieces.add(0, {"scalar", DType::f64, {}}).add(4, {"scalar", DType::f64, {}});
  pieces.add(2, {"none", DType::f32, {0, 4}});
  pieces.add(3, {"row", DType::f32, {2}}).add(2, {"row", DType::f32, {2}}, Box{{2}, {0}});
  const auto planned = plan({pieces.placement()});
  CHECK(planned.balance.unique_bytes == 36 + 8 + 8);
  CHECK(sum(loads(*planned.plan)) == planned.balance.unique_bytes);
}

TEST_CASE("a hole in a pinwheel is a gap, a blade that is too long an overlap", "[planner][cover]") {
  const TensorSpec wheel{"wheel", DType::f32, {3, 3}};
  const auto blades = [&](std::uint64_t longer) {
    Pieces pieces("model", 5);
    pieces.add(0, wheel, Box{{0, 0}, {1, 2 + longer}})
        .add(1, wheel, Box{{0, 2}, {2, 1}})
        .add(2, wheel, Box{{2, 1}, {1, 2}})
        .add(3, wheel, Box{{1, 0}, {2, 1}});
    return pieces;
  };
  CHECK(holds(refusal({blades(0).placement()}), "no rank holds [1, 2)x[1, 2); 1 of 9 elements"));
  const auto message = refusal({blades(1).placement()});
  CHECK(holds(message, "rank 0"));
  CHECK(holds(message, "rank 1"));
  CHECK(holds(message, "[0, 1)x[2, 3), 1 elements"));
}

TEST_CASE("equal placements give equal plans, however bodies are shared", "[planner][save]") {
  const auto shared = Mesh("model", {2, 3}).add({"w", DType::bf16, {60, 7}}, {{0, 0, 1}}).placement();
  auto apart = shared;
  for (auto& layout : apart.placement.layouts) layout.body = std::make_shared<const LayoutBody>(*layout.body);
  CHECK(*plan({shared}).plan == *plan({apart}).plan);
}

TEST_CASE("thousands of replicated and sharded ranks share bodies", "[planner][scale]") {
  Mesh mesh("model", {64, 32});  // fsdp x replicas
  for (int layer = 0; layer < 80; ++layer) {
    const std::string name = "layers." + std::to_string(layer) + ".";
    for (const auto* weight : {"wq", "wo", "w1", "w2"})
      mesh.add({name + weight, DType::bf16, {8192, 8192}}, {{0, 0, 0}});
    mesh.add({name + "norm", DType::bf16, {8192}}, {{0, 0, 0}});
  }
  const auto planned = plan({mesh.placement()});
  const SectionPlan& section = planned.plan->sections.front();
  std::size_t pieces = 0;
  for (const auto& rank : section.ranks) pieces += rank.pieces.size();
  CHECK(section.bodies.size() <= 32);
  CHECK(pieces <= 3 * section.ranks.size());
  CHECK(planned.balance.descriptors == 2048 * 400);
  CHECK(planned.balance.distinct_pieces == 64 * 400);
  CHECK(static_cast<double>(planned.balance.most_loaded_bytes) <= 1.01 * planned.balance.bound_bytes);
  CHECK(planned.balance.bound_bytes == Approx(planned.balance.mean_bytes));
}

}  // namespace
}  // namespace vckpt
