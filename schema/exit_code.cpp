#include "schema/exit_code.h"

#include <algorithm>

namespace vckpt {

int exit_code(Code code) {
  switch (code) {
    case Code::invalid: return 2;
    case Code::not_found: return 3;
    case Code::corrupt: return 4;
    case Code::unavailable: return 5;
    case Code::exhausted: return 6;
    case Code::aborted: return 7;
    case Code::internal: break;
  }
  return 70;
}

std::string error_line(std::string_view program, const Error& error) {
  std::string line = std::string(program) + ": " + std::string(to_string(error.code)) + ": " + error.message;
  std::replace_if(
      line.begin(), line.end(), [](char c) { return static_cast<unsigned char>(c) < ' '; }, ' ');
  return line;
}

}  // namespace vckpt
