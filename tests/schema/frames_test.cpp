// Messages in parts: put together as they were, bounded, and nothing of a broken one is left.
#include "schema/codec.h"
#include "tests/support/catch.h"

namespace vckpt {
namespace {

Bytes counted(std::size_t length) {
  Bytes bytes(length);
  for (std::size_t i = 0; i < length; ++i) bytes[i] = static_cast<std::byte>(i * 7 + i / 251);
  return bytes;
}

// All but the last part give nothing yet; the last one gives the message.
void check_joined(FrameJoiner& joiner, const std::vector<Bytes>& frames, const Bytes& message) {
  for (std::size_t i = 0; i < frames.size(); ++i) {
    const auto joined = joiner.add(frames[i]);
    REQUIRE(joined.has_value());
    CHECK(*joined == (i + 1 == frames.size() ? message : Bytes{}));
  }
}

TEST_CASE("a message comes out of its frames as it went in, whatever their size", "[frames]") {
  FrameJoiner joiner(1000);
  std::uint64_t number = 0;
  for (const std::size_t length : {1, 2, 15, 16, 17, 999, 1000}) {
    for (const std::size_t frame_bytes : {17, 18, 32, 100, 1016, 5000}) {
      CAPTURE(length, frame_bytes);
      const auto message = counted(length);
      const auto frames = split_frames(message, ++number, frame_bytes);
      for (const auto& frame : frames) CHECK(frame.size() <= frame_bytes);
      check_joined(joiner, frames, message);
    }
  }
}

TEST_CASE("a message of one byte more than the limit is exhausted, and the next one is heard", "[frames]") {
  FrameJoiner joiner(100);
  const auto frames = split_frames(counted(101), 1, 16 + 50);
  REQUIRE(frames.size() == 3);
  CHECK(joiner.add(frames[0]).has_value());
  CHECK(joiner.add(frames[1]).has_value());
  const auto refused = joiner.add(frames[2]);
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().code == Code::exhausted);
  check_joined(joiner, split_frames(counted(100), 2, 66), counted(100));
}

TEST_CASE("a frame that does not follow is corrupt, and drops what was begun", "[frames]") {
  const auto one = split_frames(counted(100), 1, 16 + 40);
  const auto two = split_frames(counted(100), 2, 16 + 40);
  const auto longer = split_frames(counted(200), 1, 16 + 40);
  REQUIRE(one.size() == 3);
  auto no_such_part = one[2];
  no_such_part[8] = std::byte{3};
  const std::vector<std::vector<Bytes>> broken = {
      {one[1]},       {one[0], one[2]}, {one[0], one[0]}, {one[0], two[1]}, {one[0], longer[1]},
      {no_such_part}, {Bytes(16)},      {Bytes{}}};
  for (const auto& frames : broken) {
    FrameJoiner joiner(1000);
    for (std::size_t i = 0; i + 1 < frames.size(); ++i) REQUIRE(joiner.add(frames[i]).has_value());
    const auto refused = joiner.add(frames.back());
    REQUIRE_FALSE(refused.has_value());
    CHECK(refused.error().code == Code::corrupt);
    check_joined(joiner, two, counted(100));
  }
}

}  // namespace
}  // namespace vckpt
