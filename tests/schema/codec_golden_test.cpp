// The bytes of every kind of message and record, as files of hexadecimal digits: what was written once is written the
// same way by every later version, and read. VCKPT_WRITE_GOLDEN=1 writes the files anew.
#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>

#include "tests/schema/codec_samples.h"
#include "tests/support/catch.h"

namespace vckpt {
namespace {

using testing::codec_samples;

constexpr std::size_t bytes_per_line = 32;

std::string golden_file(const std::string& name) {
  return std::string(VCKPT_TEST_DATA) + "/files/golden/" + name + ".hex";
}

std::string hex(const Bytes& bytes) {
  std::string text;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    constexpr char digits[] = "0123456789abcdef";
    const auto byte = std::to_integer<unsigned>(bytes[i]);
    text += {digits[byte >> 4], digits[byte & 15]};
    if (i % bytes_per_line == bytes_per_line - 1 || i + 1 == bytes.size()) text += '\n';
  }
  return text;
}

Bytes from_hex(std::istream& text) {
  Bytes bytes;
  char digits[3] = {};
  while (text >> digits[0] >> digits[1]) bytes.push_back(static_cast<std::byte>(std::strtoul(digits, nullptr, 16)));
  return bytes;
}

TEST_CASE("messages and records have their golden bytes, and are read from them", "[codec][golden]") {
  const bool writing = std::getenv("VCKPT_WRITE_GOLDEN") != nullptr;
  for (const auto& sample : codec_samples()) {
    CAPTURE(sample.name);
    if (writing) std::ofstream(golden_file(sample.name)) << hex(sample.encoded);
    std::ifstream file(golden_file(sample.name));
    const Bytes golden = from_hex(file);
    REQUIRE(!golden.empty());
    CHECK(hex(sample.encoded) == hex(golden));
    CHECK(sample.decodes_to_value(golden));
  }
}

TEST_CASE("there is a sample of every kind of message", "[codec][golden]") {
  std::set<std::size_t> kinds;
  for (const auto& sample : codec_samples()) {
    if (!sample.name.starts_with("message-")) continue;
    const auto message = decode_message(sample.encoded);
    REQUIRE(message.has_value());
    kinds.insert(message->message.index());
  }
  CHECK(kinds.size() == std::variant_size_v<Message>);
}

}  // namespace
}  // namespace vckpt
