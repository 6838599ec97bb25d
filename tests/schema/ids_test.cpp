// Identifiers: their order and their only spelling.
#include "schema/ids.h"

#include <limits>
#include <unordered_set>

#include "tests/support/catch.h"

namespace vckpt {
namespace {

constexpr std::uint64_t most = std::numeric_limits<std::uint64_t>::max();

TEST_CASE("a checkpoint's name is read back", "[ids]") {
  const CheckpointId ids[] = {{Epoch{3}, Attempt{12}, Step{600}},
                              {Epoch{999999}, Attempt{1000000}, Step{0}},
                              {Epoch{most}, Attempt{most}, Step{most}}};
  CHECK(ids[0].name() == "e000003-a000012-s000600");
  CHECK(ids[1].name() == "e999999-a1000000-s000000");
  for (const auto& id : ids) {
    const auto parsed = parse_checkpoint_id(id.name());
    REQUIRE(parsed.has_value());
    CHECK(*parsed == id);
  }
}

TEST_CASE("any other spelling of a checkpoint's name is invalid", "[ids]") {
  for (const char* name :
       {"", "e", "e3-a12-s600", "e0000003-a000012-s000600", "e000003-a000012", "e000003-a000012-s000600 ",
        " e000003-a000012-s000600", "e000003-a000012-s000600x", "E000003-a000012-s000600", "e000003a000012s000600",
        "e-00003-a000012-s000600", "e+00003-a000012-s000600", "e18446744073709551616-a000012-s000600",
        "../e000003-a000012-s000600", "e000003-a000012-s"}) {
    INFO(name);
    const auto parsed = parse_checkpoint_id(name);
    REQUIRE_FALSE(parsed.has_value());
    CHECK(parsed.error().code == Code::invalid);
    CHECK(parsed.error().message.find(std::string("'") + name + "'") != std::string::npos);
  }
}

TEST_CASE("checkpoints are ordered by epoch and attempt, whatever their steps", "[ids]") {
  const CheckpointId late{Epoch{2}, Attempt{1}, Step{5}};
  CHECK(CheckpointId{Epoch{1}, Attempt{9}, Step{900}} < late);
  CHECK(late < CheckpointId{Epoch{2}, Attempt{2}, Step{1}});
}

TEST_CASE("ids and digests are hashed by their value", "[ids]") {
  const std::unordered_set<Rank> ranks{Rank{1}, Rank{2}, Rank{1}};
  CHECK(ranks.size() == 2);
  Digest one;
  one.bytes[0] = std::byte{1};
  const std::unordered_set<Digest> digests{Digest{}, one, Digest{}};
  CHECK(digests.size() == 2);
}

TEST_CASE("a digest is 32 lower-case hex digits, first byte first", "[ids]") {
  Digest digest;
  digest.bytes[0] = std::byte{0xAB};
  digest.bytes[15] = std::byte{0x0C};
  CHECK(digest.hex() == "ab00000000000000000000000000000c");
}

}  // namespace
}  // namespace vckpt
