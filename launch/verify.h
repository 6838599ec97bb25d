// `vckpt verify`: is all that was committed still there, and unchanged?
#pragma once

#include <ostream>
#include <string>

#include "schema/result.h"

namespace vckpt::launch {

struct VerifyArguments {
  std::string checkpoint;
  bool deep = false;  // every byte, not only records and file lengths
  bool json = false;
};

// exit_ok, or exit_check_failed with one line per damage on `out`. An error: nothing could be said (no such root or
// checkpoint, a store that does not answer).
Result<int> verify(const VerifyArguments& arguments, std::ostream& out);

}  // namespace vckpt::launch
