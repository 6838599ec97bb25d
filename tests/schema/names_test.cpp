// Names on disk: their exact text, and that names of pieces are read back as what they named.
#include "schema/names.h"

#include <cstdint>
#include <random>
#include <set>
#include <string>

#include "tests/support/catch.h"

namespace vckpt {
namespace {

const CheckpointId id{Epoch{3}, Attempt{12}, Step{600}};

TEST_CASE("names on disk have their documented text", "[names]") {
  const FilePlace place{id, "model", Rank{5123}, 2};
  CHECK(names::epoch(Epoch{3}) == "epochs/000003");
  CHECK(names::epoch(Epoch{12345678}) == "epochs/12345678");
  CHECK(names::decision(id) == "decisions/e000003-a000012-s000600");
  CHECK(names::checkpoint(id) == "data/e000003-a000012-s000600");
  CHECK(names::section(id, "model") == "data/e000003-a000012-s000600/model");
  CHECK(names::rank_folder(place) == "data/e000003-a000012-s000600/model/5");
  CHECK(names::data_file(place) == "data/e000003-a000012-s000600/model/5/rank-005123-2.safetensors");
  CHECK(names::segment(id, Epoch{4}, Nonce{0xAB}, 7) ==
        "data/e000003-a000012-s000600/manifest-000004-00000000000000ab-7");
  CHECK(names::plan(Digest{}) == "plans/00000000000000000000000000000000");
}

TEST_CASE("1024 ranks share a folder", "[names]") {
  CHECK(names::rank_folder({id, "m", Rank{1023}, 0}).ends_with("/m/0"));
  CHECK(names::rank_folder({id, "m", Rank{1024}, 0}).ends_with("/m/1"));
}

TEST_CASE("only an epoch's own name is read as an epoch", "[names]") {
  CHECK(names::parse_epoch("000003") == Epoch{3});
  CHECK(names::parse_epoch("18446744073709551615") == Epoch{0xFFFFFFFFFFFFFFFF});
  for (const char* other : {"", "3", "0000003", "00003x", "x", "000000", "-00003", "18446744073709551616", " 000003"}) {
    INFO(other);
    CHECK_FALSE(names::parse_epoch(other).has_value());
  }
}

TEST_CASE("a whole tensor keeps its name and a part says where it lies", "[names]") {
  const TensorSpec spec{"layers.0.wq", DType::f32, {64, 256}};
  CHECK(names::piece(spec, whole(spec.shape)) == "layers.0.wq");
  CHECK(names::piece(spec, {{0, 128}, {64, 128}}) == "layers.0.wq@0x128+64x128");
  CHECK(names::piece({"scale", DType::f32, {}}, {}) == "scale");
  CHECK(names::piece({"a@b", DType::f32, {4}}, {{1}, {2}}) == "a@b@1+2");
}

TEST_CASE("names that could be taken for another form are escaped", "[names]") {
  const Box part{{1}, {2}};
  CHECK(names::piece({"__metadata__", DType::u8, {4}}, whole({4})) == "@__metadata__@");
  CHECK(names::piece({"__metadata__", DType::u8, {4}}, part) == "@__metadata__@1+2");
  CHECK(names::piece({"w@0+2", DType::u8, {4}}, whole({4})) == "@w@0+2@");
  CHECK(names::piece({"@x", DType::u8, {4}}, whole({4})) == "@@x@");
  CHECK(names::piece({"@x", DType::u8, {4}}, part) == "@@x@1+2");
  CHECK(names::piece({"@x@1+2", DType::u8, {4}}, whole({4})) == "@@x@1+2@");
  CHECK(names::piece({"", DType::u8, {4}}, whole({4})) == "@@");
  CHECK(names::piece({"", DType::u8, {4}}, part) == "@@1+2");
}

TEST_CASE("names that no piece has are corrupt", "[names]") {
  for (const char* name :
       {"", "@", "@a", "@a@", "@a@1+2", "@w@0+2", "__metadata__", "__metadata__@0+1", "w@0+2@0+2", "@@x", "@@x@1+",
        "@@x@01+2", "@@x@1+2x3", "@@x@18446744073709551615+1", "\xFF", "\xFF@0+1"}) {
    INFO(name);
    const auto parsed = names::parse_piece(name);
    REQUIRE_FALSE(parsed.has_value());
    CHECK(parsed.error().code == Code::corrupt);
  }
}

TEST_CASE("an almost-box in a name is part of the name", "[names]") {
  for (const char* name : {"w@", "w@0", "w@0+", "w@+2", "w@01+2", "w@0+2x", "w@0x+2x2", "w@0x0+2", "w@0 +2", "w@-1+2",
                           "w@99999999999999999999+1", "w@18446744073709551615+1", "w+0@2"}) {
    INFO(name);
    const auto parsed = names::parse_piece(name);
    REQUIRE(parsed.has_value());
    CHECK(parsed->fqn == name);
    CHECK_FALSE(parsed->box.has_value());
    CHECK(names::piece({name, DType::u8, {4}}, whole({4})) == name);
  }
}

TEST_CASE("names of pieces are distinct and read back", "[names]") {
  const auto seed = std::random_device{}();
  INFO("seed " << seed);
  std::mt19937_64 random(seed);
  const auto below = [&](std::uint64_t end) { return random() % end; };
  const std::string letters[] = {"@", "@", "0", "1", "+", "x", "a", "__metadata__", "@0+1", "@1x0+2x2"};
  std::set<std::string> seen;
  std::set<std::pair<std::string, std::optional<Box>>> pieces;
  for (int round = 0; round < 5000; ++round) {
    TensorSpec spec{"", DType::u8, {}};
    for (std::uint64_t n = below(6); n > 0; --n) spec.fqn += letters[below(std::size(letters))];
    spec.shape.resize(below(4), 3);
    Box box = whole(spec.shape);
    for (std::size_t d = 0; d < spec.shape.size(); ++d) {
      box.offsets[d] = below(3);
      box.sizes[d] = 1 + below(3 - box.offsets[d]);
    }
    const auto expected = box == whole(spec.shape) ? std::optional<Box>() : box;
    const auto name = names::piece(spec, box);
    INFO("fqn '" << spec.fqn << "' box " << to_string(box) << " name '" << name << "'");
    const auto parsed = names::parse_piece(name);
    REQUIRE(parsed.has_value());
    REQUIRE(*parsed == names::ParsedPiece{spec.fqn, expected});
    REQUIRE(seen.insert(name).second == pieces.insert({spec.fqn, expected}).second);
  }
  CHECK(seen.size() > 500);
}

}  // namespace
}  // namespace vckpt
