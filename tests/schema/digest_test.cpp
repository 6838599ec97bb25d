// Digests: published vectors, and that a chunk's digest depends on every part of its place.
#include "schema/digest.h"

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/catch.h"

namespace vckpt {
namespace {

std::span<const std::byte> bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }

// One bit at a time, from the polynomial: slow and beyond doubt.
std::uint32_t crc32c_by_bits(std::string_view text) {
  std::uint32_t state = 0xFFFFFFFF;
  for (const char c : text) {
    state ^= static_cast<unsigned char>(c);
    for (int bit = 0; bit < 8; ++bit) state = (state >> 1) ^ ((state & 1) != 0 ? 0x82F63B78u : 0u);
  }
  return ~state;
}

std::string counting(std::size_t length) {
  std::string text(length, '\0');
  for (std::size_t i = 0; i < length; ++i) text[i] = static_cast<char>((i * 131 + i / 256) & 0xFF);
  return text;
}

TEST_CASE("crc32c gives the published values", "[digest]") {
  CHECK(crc32c(bytes_of("")) == 0);
  CHECK(crc32c(bytes_of("123456789")) == 0xE3069283);
  // RFC 3720, B.4
  CHECK(crc32c(bytes_of(std::string(32, '\0'))) == 0x8A9136AA);
  CHECK(crc32c(bytes_of(std::string(32, '\xFF'))) == 0x62A8AB43);
  std::string rising;
  for (char c = 0; c < 32; ++c) rising.push_back(c);
  CHECK(crc32c(bytes_of(rising)) == 0x46DD794E);
}

TEST_CASE("crc32c equals the bitwise definition at every length and alignment", "[digest]") {
  const std::string text = counting(700);
  for (std::size_t begin = 0; begin < 9; ++begin) {
    for (std::size_t length = 0; length < 600; length += 7) {
      const auto part = std::string_view(text).substr(begin, length);
      REQUIRE(crc32c(bytes_of(part)) == crc32c_by_bits(part));
    }
  }
}

TEST_CASE("crc32c goes on from the digest of the bytes before", "[digest]") {
  const std::string text = counting(3000);
  const auto all = crc32c(bytes_of(text));
  for (std::size_t cut = 0; cut <= text.size(); cut += 101) {
    const auto head = std::string_view(text).substr(0, cut);
    const auto tail = std::string_view(text).substr(cut);
    REQUIRE(crc32c(bytes_of(tail), crc32c(bytes_of(head))) == all);
  }
}

TEST_CASE("xxh3 gives the published values", "[digest]") {
  CHECK(xxh3_64(bytes_of("")) == 0x2D06800538D394C2);
  CHECK(xxh3_128(bytes_of("")).hex() == "99aa06d3014798d86001c324468d497f");
  CHECK(xxh3_64(bytes_of("a")) != xxh3_64(bytes_of("b")));
  CHECK(xxh3_128(bytes_of("a")) != xxh3_128(bytes_of("b")));
}

TEST_CASE("a binding is the low half of XXH3-64 over the place in little-endian order", "[digest]") {
  const FilePlace place{{Epoch{1}, Attempt{0x0203}, Step{99}}, "model", Rank{4}, 5};
  std::string bound;
  bound += std::string("\x01\0\0\0\0\0\0\0", 8);
  bound += std::string("\x03\x02\0\0\0\0\0\0", 8);
  bound += "model";
  bound += std::string("\x04\0\0\0", 4);
  bound += std::string("\x05\0\0\0", 4);
  bound += std::string("\x06\0\0\0\0\0\0\0", 8);
  CHECK(chunk_binding(place, 6) == static_cast<std::uint32_t>(xxh3_64(bytes_of(bound))));
  CHECK(chunk_digest(place, 6, bytes_of("123456789")) == (0xE3069283 ^ chunk_binding(place, 6)));
}

TEST_CASE("a right chunk in a wrong place has another digest", "[digest]") {
  const FilePlace place{{Epoch{3}, Attempt{12}, Step{600}}, "model", Rank{7}, 0};
  std::vector<FilePlace> places(6, place);
  places[1].checkpoint.epoch.value += 1;
  places[2].checkpoint.attempt.value += 1;
  places[3].section = "optimizer";
  places[4].rank.value += 1;
  places[5].index += 1;
  std::set<std::uint32_t> digests;
  for (const auto& other : places) {
    for (const std::uint64_t chunk : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{1} << 32, header_chunk}) {
      digests.insert(chunk_digest(other, chunk, bytes_of("equal bytes")));
    }
  }
  CHECK(digests.size() == places.size() * 4);
}

}  // namespace
}  // namespace vckpt
