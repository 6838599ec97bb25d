#include "runtime/open_files.h"

#include <sys/resource.h>

namespace vckpt {

std::uint64_t raise_open_files_max() {
  constexpr std::uint64_t unknown_limit = 1024;  // what every Linux grants
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return unknown_limit;
  rlimit raised = limit;
  raised.rlim_cur = raised.rlim_max;
  return ::setrlimit(RLIMIT_NOFILE, &raised) == 0 ? raised.rlim_cur : limit.rlim_cur;
}

}  // namespace vckpt
