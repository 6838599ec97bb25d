// One small, fixed value of every kind of message and record, with as many fields set as it has: what golden bytes and
// damage are tested with.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "schema/codec.h"

namespace vckpt::testing {

struct Sample {
  std::string name;
  Bytes encoded;
  std::function<Result<Bytes>(std::span<const std::byte>)> recode;  // decodes, and encodes what came
  std::function<bool(std::span<const std::byte>)> decodes_to_value;
};

const std::vector<Sample>& codec_samples();

}  // namespace vckpt::testing
