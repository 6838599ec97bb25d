// Frames: 16 bytes of header (message number u64, index u32, count u32, little-endian), then a part of the message.
#include <algorithm>
#include <cstring>
#include <limits>

#include "schema/checked.h"
#include "schema/codec.h"

namespace vckpt {
namespace {

struct FrameHeader {
  std::uint64_t message_number = 0;
  std::uint32_t index = 0;
  std::uint32_t count = 0;
};

constexpr std::size_t header_bytes = 16;
static_assert(sizeof(FrameHeader) == header_bytes);

}  // namespace

std::vector<Bytes> split_frames(std::span<const std::byte> encoded, std::uint64_t message_number,
                                std::size_t frame_bytes_max) {
  VCKPT_ASSERT(!encoded.empty() && frame_bytes_max > header_bytes);
  const std::size_t part_bytes_max = frame_bytes_max - header_bytes;
  const std::uint64_t count = divide_up(encoded.size(), part_bytes_max);
  VCKPT_ASSERT(count <= std::numeric_limits<std::uint32_t>::max());
  std::vector<Bytes> frames;
  frames.reserve(count);
  for (std::uint32_t index = 0; index < count; ++index) {
    const auto part = encoded.subspan(index * part_bytes_max);
    const std::size_t part_bytes = std::min(part.size(), part_bytes_max);
    const FrameHeader header{message_number, index, static_cast<std::uint32_t>(count)};
    Bytes frame(header_bytes + part_bytes);
    std::memcpy(frame.data(), &header, header_bytes);
    std::memcpy(frame.data() + header_bytes, part.data(), part_bytes);
    frames.push_back(std::move(frame));
  }
  return frames;
}

FrameJoiner::FrameJoiner(std::uint64_t message_bytes_max) : message_bytes_max_(message_bytes_max) {}

Result<Bytes> FrameJoiner::add(std::span<const std::byte> frame) {
  Bytes begun = std::exchange(begun_, {});
  const auto expected_index = std::exchange(next_index_, 0);
  FrameHeader header;
  if (frame.size() <= header_bytes) return corrupt("frame: " + std::to_string(frame.size()) + " bytes");
  std::memcpy(&header, frame.data(), header_bytes);
  const auto part = frame.subspan(header_bytes);
  const auto position = std::to_string(header.index) + " of " + std::to_string(header.count);
  if (header.index >= header.count) return corrupt("frame " + position + ": no such part");
  const bool follows = expected_index == 0 || (header.message_number == message_number_ && header.count == count_);
  if (header.index != expected_index || !follows) {
    return corrupt("frame " + position + " of message " + std::to_string(header.message_number) +
                   ": out of order, expected part " + std::to_string(expected_index));
  }
  if (part.size() > message_bytes_max_ - begun.size()) {
    return exhausted("message " + std::to_string(header.message_number) + ": more than " +
                     std::to_string(message_bytes_max_) + " bytes");
  }
  begun.insert(begun.end(), part.begin(), part.end());
  if (header.index + 1 == header.count) return begun;
  message_number_ = header.message_number;
  count_ = header.count;
  next_index_ = header.index + 1;
  begun_ = std::move(begun);
  return Bytes{};
}

}  // namespace vckpt
