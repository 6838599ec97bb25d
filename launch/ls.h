// `vckpt ls` and `vckpt inspect`: what is under a root, and what is in a checkpoint.
#pragma once

#include <ostream>
#include <string>

#include "schema/result.h"

namespace vckpt::launch {

struct LsArguments {
  std::string root;
  bool json = false;
};

// Committed checkpoints, newest last; those that are not ancestors of the newest are marked abandoned.
Result<int> ls(const LsArguments& arguments, std::ostream& out);

struct InspectArguments {
  std::string checkpoint;
  std::string pattern;  // glob over fqns and names of items; empty: all
  bool json = false;
};

Result<int> inspect(const InspectArguments& arguments, std::ostream& out);

}  // namespace vckpt::launch
