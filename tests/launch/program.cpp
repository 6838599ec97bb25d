#include "tests/launch/program.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <fstream>
#include <sstream>

#include "launch/child.h"

namespace vckpt::launch {

namespace {

constexpr std::chrono::seconds program_deadline{100};

void read_into(Descriptor& pipe, std::string& text) {
  std::array<char, 65536> buffer;
  while (pipe) {
    const auto count = ::read(pipe.number(), buffer.data(), buffer.size());
    if (count < 0) return;
    if (count == 0) pipe.close();
    text.append(buffer.data(), static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
  }
}

}  // namespace

Ran run_program(const std::vector<std::string>& program, const Environment& environment) {
  const auto child = Child::start({program, environment});
  if (!child) return {-1, "", child.error().message};
  Ran ran;
  const auto until = std::chrono::steady_clock::now() + program_deadline;
  while (std::chrono::steady_clock::now() < until) {
    std::array<pollfd, 3> polled = {{{(*child)->output().number(), POLLIN, 0},
                                     {(*child)->errors().number(), POLLIN, 0},
                                     {(*child)->ended_descriptor(), POLLIN, 0}}};
    ::poll(polled.data(), polled.size(), 1000);
    read_into((*child)->output(), ran.out);
    read_into((*child)->errors(), ran.err);
    if (const auto ending = (*child)->poll_ending()) {
      read_into((*child)->output(), ran.out);
      read_into((*child)->errors(), ran.err);
      ran.code = ending->code;
      break;
    }
  }
  return ran;
}

std::string vckpt_program() { return VCKPT_PROGRAM; }

Ran vckpt_command(const std::vector<std::string>& arguments, const Environment& environment) {
  auto program = std::vector<std::string>{vckpt_program()};
  program.insert(program.end(), arguments.begin(), arguments.end());
  return run_program(program, environment);
}

bool one_line(const std::string& text) {
  return !text.empty() && text.back() == '\n' && std::count(text.begin(), text.end(), '\n') == 1;
}

std::string read_file(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

void write_file(const std::string& path, const std::string& content) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << content;
}

}  // namespace vckpt::launch
