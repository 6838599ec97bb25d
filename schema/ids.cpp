#include "schema/ids.h"

#include <charconv>
#include <cstdio>
#include <cstring>

namespace vckpt {
namespace {

// Reads `letter` and a decimal number from the front of `text`.
bool take(std::string_view& text, char letter, std::uint64_t& number) {
  if (text.empty() || text.front() != letter) return false;
  text.remove_prefix(1);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end == text.data()) return false;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return true;
}

bool take_dash(std::string_view& text) {
  if (text.empty() || text.front() != '-') return false;
  text.remove_prefix(1);
  return true;
}

}  // namespace

std::string Digest::hex() const {
  static constexpr char digits[] = "0123456789abcdef";
  std::string text;
  text.reserve(32);
  for (const auto byte : bytes) {
    text.push_back(digits[std::to_integer<unsigned>(byte) >> 4]);
    text.push_back(digits[std::to_integer<unsigned>(byte) & 15]);
  }
  return text;
}

std::string CheckpointId::name() const {
  char text[96];
  std::snprintf(text, sizeof text, "e%06llu-a%06llu-s%06llu", static_cast<unsigned long long>(epoch.value),
                static_cast<unsigned long long>(attempt.value), static_cast<unsigned long long>(step.value));
  return text;
}

Result<CheckpointId> parse_checkpoint_id(std::string_view name) {
  std::string_view rest = name;
  CheckpointId id;
  const bool whole = take(rest, 'e', id.epoch.value) && take_dash(rest) && take(rest, 'a', id.attempt.value) &&
                     take_dash(rest) && take(rest, 's', id.step.value) && rest.empty();
  if (!whole || id.name() != name) {
    return invalid("not a checkpoint id: '" + std::string(name) + "' (expected the form e000003-a000012-s000600)");
  }
  return id;
}

}  // namespace vckpt

std::size_t std::hash<vckpt::Digest>::operator()(const vckpt::Digest& digest) const noexcept {
  std::size_t word = 0;
  std::memcpy(&word, digest.bytes.data(), sizeof word);
  return word;
}
