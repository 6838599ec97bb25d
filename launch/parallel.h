// How a job is parallel: the sizes of its axes, and where a rank stands on each. Tensor parallelism runs fastest over
// rank numbers, pipeline parallelism slowest.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "schema/ids.h"
#include "schema/result.h"

namespace vckpt::launch {

constexpr std::uint32_t axis_max = 1 << 20;
constexpr std::uint32_t world_max = 1 << 20;

struct Parallel {
  std::uint32_t tp = 1;
  std::uint32_t cp = 1;
  std::uint32_t fsdp = 1;
  std::uint32_t dp = 1;
  std::uint32_t pp = 1;
  std::uint32_t ep = 1;  // divides dp: experts are spread over groups of data-parallel ranks
  bool zero = false;     // optimizer state as flat ranges over the ranks that hold the same parameters
  bool operator==(const Parallel&) const = default;

  std::uint32_t world_size() const { return tp * cp * fsdp * dp * pp; }
};

// Where a rank stands on each axis.
struct Position {
  std::uint32_t tp = 0;
  std::uint32_t cp = 0;
  std::uint32_t fsdp = 0;
  std::uint32_t dp = 0;
  std::uint32_t pp = 0;
  bool operator==(const Position&) const = default;
};

// `tp=2,dp=4,zero=1`: axes in any order, each at most once; those that are not named are 1 (zero: 0). invalid, naming
// the part: an unknown axis, no number, a size of 0, ep that does not divide dp, more than world_max ranks.
Result<Parallel> parse_parallel(std::string_view text);
// The axes that are not 1, in the order tp cp fsdp dp pp ep zero; `dp=1` when all are.
std::string to_string(const Parallel& parallel);

Position position(const Parallel& parallel, Rank rank);

}  // namespace vckpt::launch
