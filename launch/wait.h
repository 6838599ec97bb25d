// `vckpt wait`: blocks until a newer commit.
#pragma once

#include <cstdint>
#include <optional>
#include <ostream>
#include <string>

#include "schema/result.h"

namespace vckpt::launch {

struct WaitArguments {
  std::string root;
  std::optional<std::uint64_t> after;  // until the newest has a larger step; without: until there is another newest
  double timeout_s = 0;                // 0: for ever
  bool json = false;
};

// Says which checkpoint it is. unavailable: the timeout has passed. The root must be there, a checkpoint need not.
Result<int> wait(const WaitArguments& arguments, std::ostream& out);

}  // namespace vckpt::launch
