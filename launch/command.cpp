#include "launch/command.h"

#include <unistd.h>

#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>

namespace vckpt::launch {

namespace {

std::string fixed(double number, int digits) {
  std::array<char, 64> text{};
  const auto length = std::snprintf(text.data(), text.size(), "%.*f", digits, number);
  return {text.data(), static_cast<std::size_t>(length)};
}

}  // namespace

std::string bytes_text(std::uint64_t bytes) {
  constexpr std::array<const char*, 7> units = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  if (bytes < 1024) return std::to_string(bytes) + " B";
  auto number = static_cast<double>(bytes);
  std::size_t unit = 0;
  while (number >= 1023.95 && unit + 1 < units.size()) {
    number /= 1024;
    ++unit;
  }
  return fixed(number, 1) + " " + units[unit];
}

std::string ratio_text(double ratio) { return fixed(ratio, 3); }

std::string seconds_text(double seconds) {
  if (seconds < 10) return fixed(seconds, 3) + " s";
  if (seconds < 120) return fixed(seconds, 0) + " s";
  if (seconds < 2 * 3600) return fixed(seconds / 60, 0) + " min";
  if (seconds < 48 * 3600) return fixed(seconds / 3600, 0) + " h";
  return fixed(seconds / 86400, 0) + " d";
}

void Json::separate() {
  if (!after_key_ && !text_.empty() && text_.back() != '{' && text_.back() != '[') text_ += ',';
  after_key_ = false;
}

Json& Json::object() {
  separate();
  text_ += '{';
  open_.push_back('}');
  return *this;
}

Json& Json::array() {
  separate();
  text_ += '[';
  open_.push_back(']');
  return *this;
}

Json& Json::end() {
  VCKPT_ASSERT(!open_.empty());
  text_ += open_.back();
  open_.pop_back();
  return *this;
}

Json& Json::key(std::string_view name) {
  value(name);
  text_ += ':';
  after_key_ = true;
  return *this;
}

Json& Json::value(std::string_view text) {
  separate();
  text_ += '"';
  for (const auto c : text) {
    const auto code = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      text_ += '\\';
      text_ += c;
    } else if (code < ' ') {
      std::array<char, 8> escape{};
      std::snprintf(escape.data(), escape.size(), "\\u%04x", code);
      text_ += escape.data();
    } else {
      text_ += c;
    }
  }
  text_ += '"';
  return *this;
}

Json& Json::value(std::uint64_t number) {
  separate();
  text_ += std::to_string(number);
  return *this;
}

Json& Json::value(std::int64_t number) {
  separate();
  text_ += std::to_string(number);
  return *this;
}

Json& Json::value(double number) {
  if (!std::isfinite(number)) return null();
  separate();
  std::array<char, 64> digits{};
  const auto [end, error] = std::to_chars(digits.data(), digits.data() + digits.size(), number);
  VCKPT_ASSERT(error == std::errc());
  text_.append(digits.data(), end);
  return *this;
}

Json& Json::value(bool truth) {
  separate();
  text_ += truth ? "true" : "false";
  return *this;
}

Json& Json::value(const Dims& numbers) {
  array();
  for (const auto number : numbers) value(number);
  return end();
}

Json& Json::null() {
  separate();
  text_ += "null";
  return *this;
}

Json& Json::raw(std::string_view document) {
  separate();
  text_ += document;
  return *this;
}

const std::string& Json::text() const {
  VCKPT_ASSERT(open_.empty() && !after_key_);
  return text_;
}

Progress::Progress(std::string what, std::uint64_t total_bytes)
    : what_(std::move(what)), total_bytes_(total_bytes), terminal_(::isatty(STDERR_FILENO) == 1) {}

Progress::~Progress() {
  if (terminal_ && shown_percent_ >= 0) std::fputs("\r\033[K", stderr);
}

void Progress::add(std::uint64_t bytes) {
  done_bytes_ += bytes;
  if (!terminal_ || total_bytes_ == 0) return;
  const auto percent = static_cast<int>(static_cast<double>(done_bytes_) / static_cast<double>(total_bytes_) * 100);
  if (percent == shown_percent_) return;
  shown_percent_ = percent;
  std::fprintf(stderr, "\r\033[K%s: %d %% of %s", what_.c_str(), percent, bytes_text(total_bytes_).c_str());
}

}  // namespace vckpt::launch
