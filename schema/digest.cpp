#include "schema/digest.h"

#include <isa-l/crc.h>
#include <xxhash.h>

#include <algorithm>
#include <cstring>
#include <type_traits>

namespace vckpt {
namespace {

constexpr std::size_t crc_step_bytes = std::size_t{1} << 30;  // isa-l counts in int

template <typename Number>
void append_little_endian(std::string& text, Number number) {
  static_assert(std::is_unsigned_v<Number>);
  for (std::size_t i = 0; i < sizeof number; ++i) text.push_back(static_cast<char>((number >> (8 * i)) & 0xFF));
}

}  // namespace

std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t seed) {
  std::uint32_t state = ~seed;
  while (!bytes.empty()) {
    const std::size_t step = std::min(bytes.size(), crc_step_bytes);
    // isa-l takes a pointer to mutable bytes and only reads them.
    auto* first = reinterpret_cast<unsigned char*>(const_cast<std::byte*>(bytes.data()));
    state = crc32_iscsi(first, static_cast<int>(step), state);
    bytes = bytes.subspan(step);
  }
  return ~state;
}

std::uint64_t xxh3_64(std::span<const std::byte> bytes) { return XXH3_64bits(bytes.data(), bytes.size()); }

Digest xxh3_128(std::span<const std::byte> bytes) {
  XXH128_canonical_t canonical;  // big-endian, so that hex() reads like the output of `xxhsum -H2`
  XXH128_canonicalFromHash(&canonical, XXH3_128bits(bytes.data(), bytes.size()));
  Digest digest;
  static_assert(sizeof canonical.digest == sizeof digest.bytes);
  std::memcpy(digest.bytes.data(), canonical.digest, digest.bytes.size());
  return digest;
}

std::uint32_t chunk_binding(const FilePlace& place, std::uint64_t chunk) {
  std::string bound;
  bound.reserve(32 + place.section.size());
  append_little_endian(bound, place.checkpoint.epoch.value);
  append_little_endian(bound, place.checkpoint.attempt.value);
  bound += place.section;
  append_little_endian(bound, place.rank.value);
  append_little_endian(bound, place.index);
  append_little_endian(bound, chunk);
  return static_cast<std::uint32_t>(xxh3_64(std::as_bytes(std::span(bound))));
}

std::uint32_t chunk_digest(const FilePlace& place, std::uint64_t chunk, std::span<const std::byte> bytes) {
  return crc32c(bytes) ^ chunk_binding(place, chunk);
}

}  // namespace vckpt
