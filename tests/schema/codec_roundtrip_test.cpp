// What is written is read back; equal values have equal bytes.
#include <bit>
#include <limits>
#include <random>

#include "schema/digest.h"
#include "tests/schema/random_values.h"
#include "tests/support/catch.h"

namespace vckpt {
namespace {

using testing::RandomValues;

template <typename T, typename Decode>
void check_round_trip(const T& value, Decode&& decode) {
  const Bytes bytes = encode(value);
  const T copy = value;
  CHECK(encode(copy) == bytes);
  const auto decoded = decode(bytes);
  if (!decoded) FAIL(decoded.error().message);
  CHECK(*decoded == value);

  Bytes shifted(bytes.size() + 1);  // a buffer that is not aligned, as ZeroMQ gives them
  std::copy(bytes.begin(), bytes.end(), shifted.begin() + 1);
  const auto unaligned = decode(std::span<const std::byte>(shifted).subspan(1));
  REQUIRE(unaligned.has_value());
  CHECK(*unaligned == value);
}

Result<Value> through_bytes(const Value& value) { return decode_value(encode(value)); }

Value nested(std::size_t levels) {
  Value value;
  for (std::size_t i = 1; i < levels; ++i) value = Value{Value::List{value}};
  return value;
}

TEST_CASE("every kind of record and message survives the codec", "[codec]") {
  const std::uint64_t seed = std::random_device{}();
  INFO("seed " << seed);
  RandomValues random(seed);
  for (int i = 0; i < 60; ++i) {
    check_round_trip(random.run(), decode_run);
    check_round_trip(random.epoch(), decode_epoch);
    check_round_trip(random.segment(), decode_segment);
    check_round_trip(random.decision(), decode_decision);
    check_round_trip(random.body(), decode_body);
    check_round_trip(random.value(), decode_value);
    check_round_trip(random.plan(), decode_plan);
    for (std::size_t kind = 0; kind < std::variant_size_v<Message>; ++kind) {
      const auto message = random.message(kind);
      REQUIRE(message.message.index() == kind);
      check_round_trip(message, decode_message);
    }
  }
}

// `decode` refuses the record with any one byte changed, or cut anywhere.
template <typename Decode>
void check_sealed(const Bytes& bytes, Decode&& decode) {
  REQUIRE(decode(bytes).has_value());
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    for (const auto change : {std::byte{1}, std::byte{0x80}, std::byte{0xFF}}) {
      auto changed = bytes;
      changed[at] ^= change;
      const auto decoded = decode(changed);
      INFO("byte " << at << " of " << bytes.size());
      REQUIRE_FALSE(decoded.has_value());
      CHECK(decoded.error().code == Code::corrupt);
    }
    CHECK_FALSE(decode(std::span(bytes).first(at)).has_value());
  }
}

TEST_CASE("records that no digest names are refused when any byte of them changes", "[codec]") {
  RandomValues random(11);
  check_sealed(encode(random.run()), decode_run);
  check_sealed(encode(random.epoch()), decode_epoch);
  check_sealed(encode(random.decision()), decode_decision);
}

TEST_CASE("the digest of a body is that of its encoding", "[codec]") {
  RandomValues random(7);
  const auto body = random.body();
  CHECK(digest(body) == xxh3_128(encode(body)));
  auto other = body;
  other.tensors.front().shape.push_back(2);
  CHECK(digest(other) != digest(body));
}

TEST_CASE("doubles keep their very bits", "[codec]") {
  const std::uint64_t patterns[] = {0x7FF8000000000001, 0xFFF8DEADBEEF0000, 0x7FF0000000000001,
                                    0x8000000000000000, 0x7FF0000000000000, 0x0000000000000001};
  for (const auto pattern : patterns) {
    const auto decoded = through_bytes(Value{std::bit_cast<double>(pattern)});
    REQUIRE(decoded.has_value());
    CHECK(std::bit_cast<std::uint64_t>(std::get<double>(decoded->data)) == pattern);
  }
}

TEST_CASE("a list of nothing but nulls survives", "[codec]") {
  const Value nulls{Value::List(5000)};
  const auto decoded = through_bytes(nulls);
  REQUIRE(decoded.has_value());
  CHECK(*decoded == nulls);
}

TEST_CASE("values nest up to their limit, and no deeper", "[codec]") {
  const auto deepest = through_bytes(nested(value_depth_max));
  REQUIRE(deepest.has_value());
  CHECK(*deepest == nested(value_depth_max));
  const auto deeper = through_bytes(nested(value_depth_max + 1));
  REQUIRE_FALSE(deeper.has_value());
  CHECK(deeper.error().code == Code::corrupt);
  CHECK(deeper.error().message.find("deep") != std::string::npos);
}

TEST_CASE("a plan of sixteen thousand ranks stays small", "[codec]") {
  SectionPlan section{"model", {}, {}, {}};
  OwnedBody body;
  for (std::uint32_t i = 0; i < 1000; ++i) {
    std::string number = std::to_string(100000 + i);
    section.tensors.push_back(TensorSpec{"model.layers." + number + ".mlp.weight", DType::bf16, {16384, 53248}});
    body.entries.push_back(Entry{i, std::nullopt, {Cut{0, 2048, 0}, Cut{1, 8, 1}}, std::nullopt});
  }
  section.bodies.push_back(std::move(body));
  for (std::uint32_t rank = 0; rank < 16384; ++rank) {
    RankOwnership ownership{0, {rank / 8, rank % 8}, {}};
    for (std::uint32_t i = 0; i < 8; ++i) ownership.pieces.push_back(Piece{i, Box{{rank, i}, {1, 1000}}});
    section.ranks.push_back(std::move(ownership));
  }
  const SavePlan plan{{std::move(section)}};
  const auto bytes = encode(plan);
  CHECK(bytes.size() < 8 << 20);
  const auto decoded = decode_plan(bytes);
  REQUIRE(decoded.has_value());
  CHECK(*decoded == plan);
}

}  // namespace
}  // namespace vckpt
