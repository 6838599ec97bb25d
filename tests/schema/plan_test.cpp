// Files of a plan: which pieces lie where in the file of a rank.
#include "schema/plan.h"

#include <algorithm>
#include <map>
#include <random>
#include <set>

#include "tests/support/catch.h"

namespace vckpt {
namespace {

std::vector<Piece> bare(const std::vector<PlacedPiece>& placed) {
  std::vector<Piece> pieces;
  for (const auto& piece : placed) pieces.push_back(Piece{piece.tensor, piece.box});
  return pieces;
}

TEST_CASE("pieces lie wider types first, then by tensor and offsets, back to back", "[plan]") {
  const std::vector<TensorSpec> tensors = {
      {"a", DType::u8, {3}},      {"b", DType::f32, {2, 4}}, {"c", DType::c128, {}},       {"d", DType::f4, {3}},
      {"e", DType::f6_e2m3, {4}}, {"f", DType::i32, {2}},    {"g", DType::f64, {0, 1000}}, {"h", DType::i8, {1}}};
  const auto placed = place_pieces(tensors, {{7, whole({1})},
                                             {0, whole({3})},
                                             {3, whole({3})},
                                             {4, whole({4})},
                                             {5, whole({2})},
                                             {1, {{1, 0}, {1, 4}}},
                                             {1, {{0, 2}, {1, 2}}},
                                             {1, {{0, 0}, {1, 2}}},
                                             {1, {{2, 0}, {0, 4}}},
                                             {6, whole({0, 1000})},
                                             {2, whole({})}});
  const std::vector<PlacedPiece> expected = {
      {2, {}, 0, 16},         {1, {{0, 0}, {1, 2}}, 16, 8}, {1, {{0, 2}, {1, 2}}, 24, 8}, {1, {{1, 0}, {1, 4}}, 32, 16},
      {5, whole({2}), 48, 8}, {0, whole({3}), 56, 3},       {7, whole({1}), 59, 1},       {4, whole({4}), 60, 3},
      {3, whole({3}), 63, 2},
  };
  CHECK(placed == expected);
  CHECK(data_bytes(placed) == 65);
}

TEST_CASE("a rank that owns nothing has no file", "[plan]") {
  SectionPlan plan{"model", {{"w", DType::f32, {4}}}, {}, {RankOwnership{}, RankOwnership{}}};
  plan.ranks[1].pieces = {{0, whole({4})}};
  CHECK(file_pieces(plan, Rank{0}).empty());
  CHECK(data_bytes(file_pieces(plan, Rank{0})) == 0);
  CHECK(data_bytes(file_pieces(plan, Rank{1})) == 16);
}

TEST_CASE("a rank's file holds the grid of its body at its coordinates, and its own pieces", "[plan]") {
  SectionPlan plan{"model", {{"a", DType::f32, {4, 4}}, {"b", DType::f32, {5}}}, {}, {}};
  plan.bodies.push_back({{Entry{0, std::nullopt, {{0, 2, 0}, {1, 2, 1}}, std::nullopt},
                          Entry{1, Box{{1}, {4}}, {{0, 2, 0}}, std::nullopt}}});
  plan.ranks.push_back({0, {1, 0}, {{1, {{0}, {1}}}}});
  CHECK(bare(file_pieces(plan, Rank{0})) ==
        std::vector<Piece>{{0, {{2, 0}, {2, 2}}}, {1, {{0}, {1}}}, {1, {{3}, {2}}}});
}

TEST_CASE("trailing parts of a grid that are empty lie in no file", "[plan]") {
  SectionPlan plan{"model", {{"a", DType::f32, {5}}}, {{{Entry{0, std::nullopt, {{0, 4, 0}}, std::nullopt}}}}, {}};
  for (std::uint32_t part = 0; part < 4; ++part) plan.ranks.push_back({0, {part}, {}});
  std::vector<std::uint64_t> bytes;
  for (std::uint32_t rank = 0; rank < 4; ++rank) bytes.push_back(data_bytes(file_pieces(plan, Rank{rank})));
  CHECK(bytes == std::vector<std::uint64_t>{8, 8, 4, 0});
}

// Random grids over random meshes: the files of all ranks hold every element once, aligned to its own width.
TEST_CASE("files of a random grid hold every element once and aligned", "[plan]") {
  const auto seed = std::random_device{}();
  INFO("seed " << seed);
  std::mt19937_64 random(seed);
  const DType dtypes[] = {DType::u8, DType::bf16, DType::f32, DType::f64, DType::c128};
  for (int round = 0; round < 60; ++round) {
    const std::uint32_t mesh[] = {1 + static_cast<std::uint32_t>(random() % 4),
                                  1 + static_cast<std::uint32_t>(random() % 3)};
    SectionPlan plan{"model", {}, {OwnedBody{}}, {}};
    for (std::uint32_t t = 0; t < 4; ++t) {
      plan.tensors.push_back(
          {"t" + std::to_string(t), dtypes[random() % std::size(dtypes)], {random() % 6, random() % 6}});
      const auto first_dim = static_cast<std::uint32_t>(random() % 2);
      const auto second_dim = static_cast<std::uint32_t>(random() % 2);
      plan.bodies[0].entries.push_back(
          {t, std::nullopt, {{first_dim, mesh[0], 0}, {second_dim, mesh[1], 1}}, std::nullopt});
    }
    for (std::uint32_t i = 0; i < mesh[0]; ++i) {
      for (std::uint32_t j = 0; j < mesh[1]; ++j) plan.ranks.push_back({0, {i, j}, {}});
    }
    std::map<std::uint32_t, std::multiset<std::pair<std::uint64_t, std::uint64_t>>> seen;
    for (std::uint32_t rank = 0; rank < plan.ranks.size(); ++rank) {
      std::uint64_t next = 0;
      for (const auto& piece : file_pieces(plan, Rank{rank})) {
        const std::uint64_t width = bits(plan.tensors[piece.tensor].dtype) / 8;
        REQUIRE(piece.offset_bytes == next);
        REQUIRE(piece.offset_bytes % width == 0);
        REQUIRE(piece.length_bytes == elements(piece.box) * width);
        next += piece.length_bytes;
        for (std::uint64_t y = 0; y < piece.box.sizes[0]; ++y) {
          for (std::uint64_t x = 0; x < piece.box.sizes[1]; ++x) {
            seen[piece.tensor].insert({piece.box.offsets[0] + y, piece.box.offsets[1] + x});
          }
        }
      }
    }
    for (std::uint32_t t = 0; t < plan.tensors.size(); ++t) {
      INFO(to_string(plan.tensors[t]));
      const std::set<std::pair<std::uint64_t, std::uint64_t>> distinct(seen[t].begin(), seen[t].end());
      REQUIRE(distinct.size() == elements(whole(plan.tensors[t].shape)));
      REQUIRE(seen[t].size() == distinct.size());
    }
  }
}

TEST_CASE("the order of a plan's pieces does not depend on how they were listed", "[plan]") {
  const auto seed = std::random_device{}();
  INFO("seed " << seed);
  std::mt19937_64 random(seed);
  const std::vector<TensorSpec> tensors = {{"a", DType::f32, {8}}, {"b", DType::bf16, {8}}, {"c", DType::f32, {8}}};
  std::vector<Piece> pieces;
  for (std::uint32_t t = 0; t < 3; ++t) {
    for (std::uint64_t at = 0; at < 8; ++at) pieces.push_back({t, {{at}, {1}}});
  }
  const auto expected = place_pieces(tensors, pieces);
  for (int round = 0; round < 20; ++round) {
    std::shuffle(pieces.begin(), pieces.end(), random);
    REQUIRE(place_pieces(tensors, pieces) == expected);
  }
}

}  // namespace
}  // namespace vckpt
