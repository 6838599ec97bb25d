// How much memory this process could still take, of the machine and of the control groups it lives in.
#pragma once

#include <cstdint>
#include <string>

namespace vckpt {

// MemAvailable, or less where a control group (version 2, or 1's memory controller) has less left; 0 when nothing of it
// can be read. The folders are parameters for tests.
std::uint64_t free_memory_bytes(const std::string& proc = "/proc", const std::string& cgroup = "/sys/fs/cgroup");

}  // namespace vckpt
