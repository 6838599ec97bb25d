#include "runtime/transport_frame.h"

#include <bit>
#include <cstring>

#include "schema/digest.h"

namespace vckpt {
namespace {

static_assert(std::endian::native == std::endian::little);

constexpr std::uint32_t protocol_version = 1;
constexpr std::uint32_t frame_magic = 0x4B435646;  // "FVCK"
constexpr std::uint8_t checked_flag = 1;

class Writer {
 public:
  explicit Writer(std::span<std::byte> bytes) : bytes_(bytes) {}
  template <typename Number>
  void put(Number number) {
    std::memcpy(bytes_.data() + at_, &number, sizeof number);
    at_ += sizeof number;
  }
  void seal() {
    at_ = bytes_.size() - sizeof(std::uint32_t);
    put(crc32c(bytes_.first(at_)));
  }

 private:
  std::span<std::byte> bytes_;
  std::size_t at_ = 0;
};

class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes) : bytes_(bytes) {}
  template <typename Number>
  Number get() {
    Number number{};
    std::memcpy(&number, bytes_.data() + at_, sizeof number);
    at_ += sizeof number;
    return number;
  }
  bool sealed() const {
    const std::size_t length = bytes_.size() - sizeof(std::uint32_t);
    std::uint32_t seal = 0;
    std::memcpy(&seal, bytes_.data() + length, sizeof seal);
    return seal == crc32c(bytes_.first(length));
  }

 private:
  std::span<const std::byte> bytes_;
  std::size_t at_ = 0;
};

}  // namespace

std::array<std::byte, greeting_bytes> encode(const Greeting& greeting) {
  std::array<std::byte, greeting_bytes> bytes{};
  Writer writer(bytes);
  writer.put(greeting.kind);
  writer.put(protocol_version);
  writer.put(greeting.generation);
  writer.put(greeting.from.value);
  writer.put(greeting.to.value);
  writer.put(std::uint32_t{0});
  writer.put(greeting.from_incarnation.value);
  writer.put(greeting.to_incarnation.value);
  writer.seal();
  return bytes;
}

Result<Greeting> decode_greeting(std::span<const std::byte, greeting_bytes> bytes) {
  Reader reader(bytes);
  if (!reader.sealed()) return corrupt("a greeting with a wrong checksum");
  Greeting greeting;
  greeting.kind = reader.get<GreetingKind>();
  if (greeting.kind != GreetingKind::hello && greeting.kind != GreetingKind::welcome) return corrupt("not a greeting");
  if (const auto version = reader.get<std::uint32_t>(); version != protocol_version) {
    return corrupt("a greeting of transport version " + std::to_string(version));
  }
  greeting.generation = reader.get<std::uint32_t>();
  greeting.from.value = reader.get<std::uint32_t>();
  greeting.to.value = reader.get<std::uint32_t>();
  reader.get<std::uint32_t>();
  greeting.from_incarnation.value = reader.get<std::uint64_t>();
  greeting.to_incarnation.value = reader.get<std::uint64_t>();
  return greeting;
}

std::array<std::byte, frame_header_bytes> encode(const FrameHeader& header) {
  std::array<std::byte, frame_header_bytes> bytes{};
  Writer writer(bytes);
  writer.put(frame_magic);
  writer.put(header.kind);
  writer.put(header.checked ? checked_flag : std::uint8_t{0});
  writer.put(std::uint16_t{0});
  writer.put(header.generation);
  writer.put(header.round.value);
  writer.put(header.offset_bytes);
  writer.put(header.length_bytes);
  writer.put(header.payload_crc);
  writer.seal();
  return bytes;
}

Result<FrameHeader> decode_frame_header(std::span<const std::byte, frame_header_bytes> bytes) {
  Reader reader(bytes);
  if (reader.get<std::uint32_t>() != frame_magic) return corrupt("not a frame");
  if (!reader.sealed()) return corrupt("a frame header with a wrong checksum");
  FrameHeader header;
  header.kind = reader.get<FrameKind>();
  if (header.kind < FrameKind::ready || header.kind > FrameKind::ack) return corrupt("a frame of an unknown kind");
  header.checked = (reader.get<std::uint8_t>() & checked_flag) != 0;
  reader.get<std::uint16_t>();
  header.generation = reader.get<std::uint32_t>();
  header.round.value = reader.get<std::uint32_t>();
  header.offset_bytes = reader.get<std::uint64_t>();
  header.length_bytes = reader.get<std::uint64_t>();
  header.payload_crc = reader.get<std::uint32_t>();
  if (header.payload_bytes() > frame_payload_bytes_max) {
    return corrupt("a frame of " + std::to_string(header.length_bytes) + " bytes");
  }
  return header;
}

}  // namespace vckpt
