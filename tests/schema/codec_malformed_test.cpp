// Damaged and hostile bytes: a decoder says `corrupt`, or reads a value whose very encoding it was given. It never
// throws, and never believes a length that is not there.
#include <cstring>
#include <random>

#include "tests/schema/codec_samples.h"
#include "tests/support/catch.h"

namespace vckpt {
namespace {

using testing::codec_samples;
using testing::Sample;

void check_survives(const Sample& sample, std::span<const std::byte> bytes) {
  const auto again = sample.recode(bytes);
  if (!again) {
    if (again.error().code != Code::corrupt) FAIL(again.error().message);
    return;
  }
  if (!std::equal(again->begin(), again->end(), bytes.begin(), bytes.end())) FAIL("read what is not canonical");
}

void put(Bytes& bytes, std::size_t at, std::uint64_t word) { std::memcpy(bytes.data() + at, &word, sizeof word); }

TEST_CASE("a message that is cut anywhere, or longer, is corrupt", "[codec][malformed]") {
  for (const auto& sample : codec_samples()) {
    CAPTURE(sample.name);
    const std::span<const std::byte> whole(sample.encoded);
    for (std::size_t length = 0; length < whole.size(); ++length) {
      CAPTURE(length);
      const auto decoded = sample.recode(whole.first(length));
      REQUIRE_FALSE(decoded.has_value());
      CHECK(decoded.error().code == Code::corrupt);
    }
    for (const std::size_t more : {1, 4, 8, 16, 4096}) {
      Bytes longer = sample.encoded;
      longer.resize(longer.size() + more);
      CHECK_FALSE(sample.recode(longer).has_value());
    }
  }
}

TEST_CASE("any flipped bit is corrupt or gives another value in its canonical form", "[codec][malformed]") {
  for (const auto& sample : codec_samples()) {
    CAPTURE(sample.name);
    for (std::size_t bit = 0; bit < sample.encoded.size() * 8; ++bit) {
      Bytes bytes = sample.encoded;
      bytes[bit / 8] ^= static_cast<std::byte>(1 << (bit % 8));
      check_survives(sample, bytes);
    }
  }
}

// Every word in turn becomes a pointer of the worst kinds: to itself, backwards, far, and to lists of every element
// size with the most elements that can be said.
TEST_CASE("hostile pointers in any place are survived", "[codec][malformed]") {
  std::vector<std::uint64_t> hostile = {0xFFFFFFFFFFFFFFFC,  // struct just before, all of 65535 words
                                        0x0000000000000002, 0x0000000000000006, 0xFFFFFFFF00000002,  // far
                                        0x0000000000000003};                                         // capability
  for (std::uint64_t size = 0; size < 8; ++size) {
    for (const std::uint64_t offset : {0ULL, 0xFFFFFFFFULL & ~3ULL}) {
      hostile.push_back(1 | offset | (size << 32) | (0x1FFFFFFFULL << 35));
      hostile.push_back(1 | offset | (size << 32) | (1ULL << 35));
    }
  }
  for (const auto& sample : codec_samples()) {
    CAPTURE(sample.name);
    for (std::size_t at = 8; at + 8 <= sample.encoded.size(); at += 8) {
      for (const auto word : hostile) {
        Bytes bytes = sample.encoded;
        put(bytes, at, word);
        check_survives(sample, bytes);
      }
    }
  }
}

TEST_CASE("random words behind a fitting segment table are survived", "[codec][malformed]") {
  const std::uint64_t seed = std::random_device{}();
  INFO("seed " << seed);
  std::mt19937_64 random(seed);
  for (const auto& sample : codec_samples()) {
    CAPTURE(sample.name);
    for (int i = 0; i < 300; ++i) {
      const auto words = 1 + random() % 60;
      Bytes bytes(8 + words * 8);
      put(bytes, 0, words << 32);
      for (std::uint64_t word = 1; word <= words; ++word) {
        // Mostly small numbers: pointers that lead somewhere.
        put(bytes, word * 8, random() % 3 == 0 ? random() : (random() % 8 << 32) | random() % 64);
      }
      check_survives(sample, bytes);
    }
  }
}

}  // namespace
}  // namespace vckpt
