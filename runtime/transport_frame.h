// The bytes between two transports. Each connection has one speaker, who dialled, and one listener: the speaker says
// hello, the listener answers welcome once it takes part in the same exchange, then frames follow, from the speaker
// only. All numbers are little-endian; greetings and frame headers carry a CRC32C of themselves.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "schema/ids.h"
#include "schema/result.h"

namespace vckpt {

constexpr std::size_t greeting_bytes = 48;
constexpr std::size_t frame_header_bytes = 40;
constexpr std::uint64_t frame_payload_bytes_max = 256 << 10;

enum class GreetingKind : std::uint32_t { hello = 0x4B435648, welcome = 0x4B435657 };  // "HVCK", "WVCK"

// Who speaks to whom in which exchange. The incarnations come from the coordinator: they tell a process from its
// predecessor at the same address and from another job's, not friend from attacker.
struct Greeting {
  GreetingKind kind = GreetingKind::hello;
  std::uint32_t generation = 0;
  Rank from;
  Rank to;
  Incarnation from_incarnation;
  Incarnation to_incarnation;
  bool operator==(const Greeting&) const = default;
};

enum class FrameKind : std::uint8_t {
  ready = 1,  // the speaker has posted the round and waits for `length_bytes`
  data = 2,   // `length_bytes` of the round's transfer from `offset_bytes`, as payload
  ack = 3,    // all of the round's transfer has arrived
};

struct FrameHeader {
  FrameKind kind = FrameKind::ready;
  std::uint32_t generation = 0;
  Round round;
  std::uint64_t offset_bytes = 0;
  std::uint64_t length_bytes = 0;
  bool checked = false;           // payload_crc holds
  std::uint32_t payload_crc = 0;  // CRC32C
  std::uint64_t payload_bytes() const { return kind == FrameKind::data ? length_bytes : 0; }
  bool operator==(const FrameHeader&) const = default;
};

std::array<std::byte, greeting_bytes> encode(const Greeting& greeting);
Result<Greeting> decode_greeting(std::span<const std::byte, greeting_bytes> bytes);

std::array<std::byte, frame_header_bytes> encode(const FrameHeader& header);
// corrupt: not a header, or a payload above the limit.
Result<FrameHeader> decode_frame_header(std::span<const std::byte, frame_header_bytes> bytes);

}  // namespace vckpt
