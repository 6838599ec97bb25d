// `vckpt explain`: what became of an attempt at a save, and why.
#pragma once

#include <cstdint>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>

#include "schema/result.h"

namespace vckpt::launch {

struct ExplainArguments {
  std::string attempt;  // ROOT@STEP: all with that step; ROOT@ID; ROOT: the last one
  bool json = false;
};

// One paragraph for each attempt, oldest first. not_found: no record or folder of such an attempt is there.
Result<int> explain(const ExplainArguments& arguments, std::ostream& out);

// Who and what the reason of an ABORT names, as far as it does.
struct Blame {
  std::string code;  // the first word of the reason
  std::optional<std::uint32_t> rank;
  std::string host;
  std::string phase;
  std::string object;  // file, section or tensor
  bool operator==(const Blame&) const = default;
};
Blame blame(std::string_view reason);

}  // namespace vckpt::launch
