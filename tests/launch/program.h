// Runs programs as a user does, and keeps what they said.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace vckpt::launch {

struct Ran {
  int code = -1;  // as a shell says it; -1: it did not end in time and was killed
  std::string out;
  std::string err;
};

using Environment = std::vector<std::pair<std::string, std::string>>;

Ran run_program(const std::vector<std::string>& program, const Environment& environment = {});
// The `vckpt` of this build.
Ran vckpt_command(const std::vector<std::string>& arguments, const Environment& environment = {});
std::string vckpt_program();

// A line, and only one.
bool one_line(const std::string& text);
std::string read_file(const std::string& path);
void write_file(const std::string& path, const std::string& content);

}  // namespace vckpt::launch
