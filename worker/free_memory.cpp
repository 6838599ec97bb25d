#include "worker/free_memory.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <optional>

namespace vckpt {
namespace {

std::optional<std::uint64_t> number_in(const std::string& file) {
  std::ifstream stream(file);
  std::string word;
  std::uint64_t number = 0;
  if (!(stream >> word)) return std::nullopt;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
  return error == std::errc{} && end == word.data() + word.size() ? std::optional(number) : std::nullopt;  // not `max`
}

std::uint64_t available_bytes(const std::string& proc) {
  std::ifstream stream(proc + "/meminfo");
  std::string name;
  std::uint64_t kibibytes = 0;
  std::string unit;
  for (int lines = 0; lines < 1000 && stream >> name >> kibibytes; ++lines) {
    std::getline(stream, unit);
    if (name == "MemAvailable:") return kibibytes * 1024;
  }
  return 0;
}

void narrow(std::uint64_t& free_bytes, const std::string& limit, const std::string& used) {
  const auto most = number_in(limit);
  const auto taken = number_in(used);
  if (most && taken) free_bytes = std::min(free_bytes, *most - std::min(*most, *taken));
}

}  // namespace

std::uint64_t free_memory_bytes(const std::string& proc, const std::string& cgroup) {
  std::uint64_t free_bytes = available_bytes(proc);
  std::ifstream stream(proc + "/self/cgroup");
  std::string line;
  for (int lines = 0; lines < 100 && std::getline(stream, line); ++lines) {
    const bool version_2 = line.starts_with("0::/");
    const auto memory = line.find(":memory:/");
    if (!version_2 && memory == std::string::npos) continue;
    std::string path = version_2 ? line.substr(3) : line.substr(memory + 8);
    // Every group up to the root has its own limit.
    for (int depth = 0; depth < 64; ++depth) {
      const std::string folder = cgroup + (version_2 ? "" : "/memory") + path;
      if (version_2) {
        narrow(free_bytes, folder + "/memory.max", folder + "/memory.current");
      } else {
        narrow(free_bytes, folder + "/memory.limit_in_bytes", folder + "/memory.usage_in_bytes");
      }
      if (path.empty() || path == "/") break;
      path.resize(path.rfind('/'));
    }
  }
  return free_bytes;
}

}  // namespace vckpt
