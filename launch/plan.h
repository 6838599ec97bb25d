// `vckpt plan`: what a save, and a load into another layout, would do, without data or processes.
#pragma once

#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

#include "schema/result.h"

namespace vckpt::launch {

struct PlanArguments {
  std::vector<std::string> model;
  std::string layout;
  std::string to;  // empty: no load
  std::string optimizer = "none";
  std::uint64_t staging_bytes = std::uint64_t{4} << 30;  // of every loading rank
  bool json = false;
};

Result<int> plan(const PlanArguments& arguments, std::ostream& out);

}  // namespace vckpt::launch
