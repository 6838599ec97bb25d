#include "worker/free_memory.h"

#include <filesystem>
#include <fstream>
#include <string>

#include "tests/support/catch.h"
#include "tests/support/temporary_folder.h"
#include "worker/route_address.h"

namespace vckpt {
namespace {

void write(const std::string& file, const std::string& text) {
  std::filesystem::create_directories(std::filesystem::path(file).parent_path());
  std::ofstream(file) << text;
}

TEST_CASE("free memory is what the machine and every control group leave", "[free_memory]") {
  const TemporaryFolder folder;
  const std::string proc = (folder.path().string() + "/proc");
  const std::string cgroup = (folder.path().string() + "/cgroup");
  CHECK(free_memory_bytes(proc, cgroup) == 0);
  write(proc + "/meminfo", "MemTotal:  100 kB\nMemFree: 10 kB\nMemAvailable:   50 kB\n");
  CHECK(free_memory_bytes(proc, cgroup) == 50 * 1024);
  write(proc + "/self/cgroup", "0::/job/rank\n");
  write(cgroup + "/job/rank/memory.max", "max\n");
  write(cgroup + "/job/rank/memory.current", "1000\n");
  CHECK(free_memory_bytes(proc, cgroup) == 50 * 1024);
  write(cgroup + "/job/memory.max", "30000\n");
  write(cgroup + "/job/memory.current", "10000\n");
  CHECK(free_memory_bytes(proc, cgroup) == 20000);
  write(cgroup + "/job/memory.current", "40000\n");
  CHECK(free_memory_bytes(proc, cgroup) == 0);
  write(proc + "/self/cgroup", "5:memory:/old\n");
  write(cgroup + "/memory/old/memory.limit_in_bytes", "5000\n");
  write(cgroup + "/memory/old/memory.usage_in_bytes", "2000\n");
  CHECK(free_memory_bytes(proc, cgroup) == 3000);
  CHECK(free_memory_bytes() > 0);
}

TEST_CASE("the address towards a coordinator on loopback is none", "[route_address]") {
  CHECK(route_address("tcp://127.0.0.1:1234").value().empty());
  CHECK(route_address("tcp://localhost:1234").value().empty());
  for (const auto* endpoint : {"", "tcp://", "127.0.0.1:80", "tcp://host", "tcp://:80", "udp://127.0.0.1:80",
                               "tcp://host:", "tcp://host:65536"}) {
    CAPTURE(endpoint);
    CHECK(route_address(endpoint).error().code == Code::invalid);
  }
}

}  // namespace
}  // namespace vckpt
