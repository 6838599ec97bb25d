// What all commands have in common: exit codes, numbers for people, JSON text.
#pragma once

#include <cstdint>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "schema/box.h"
#include "schema/exit_code.h"
#include "schema/result.h"

namespace vckpt::launch {

constexpr int exit_ok = 0;
constexpr int exit_check_failed = 1;
constexpr int exit_usage = 2;

std::string bytes_text(std::uint64_t bytes);  // `512 B`, `1.5 MiB`
std::string ratio_text(double ratio);         // `1.003`
std::string seconds_text(double seconds);     // `0.012 s`, `3.4 s`, `2 min`, `5 h`, `3 d`

// One JSON document, written key by key in the order of the calls. Numbers stay numbers; text is escaped.
class Json {
 public:
  Json& object();  // opens one: as an element, or as the value of the last key
  Json& array();
  Json& end();  // closes the innermost
  Json& key(std::string_view name);
  Json& value(std::string_view text);
  Json& value(const char* text) { return value(std::string_view(text)); }
  Json& value(std::uint64_t number);
  Json& value(std::int64_t number);
  Json& value(std::uint32_t number) { return value(std::uint64_t{number}); }
  Json& value(double number);  // null when it is no number
  Json& value(bool truth);
  Json& value(const Dims& numbers);
  Json& null();
  Json& raw(std::string_view document);  // a JSON document of somebody else
  template <typename T>
  Json& member(std::string_view name, const T& of) {
    return key(name).value(of);
  }

  // The document; everything must be closed.
  const std::string& text() const;

 private:
  void separate();

  std::string text_;
  std::vector<char> open_;
  bool after_key_ = false;
};

// Progress on a terminal, nothing in a pipe. To stderr, on one line that is rewritten.
class Progress {
 public:
  Progress(std::string what, std::uint64_t total_bytes);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  void add(std::uint64_t bytes);

 private:
  const std::string what_;
  const std::uint64_t total_bytes_;
  const bool terminal_;
  std::uint64_t done_bytes_ = 0;
  int shown_percent_ = -1;
};

}  // namespace vckpt::launch
