// What a set of ranks holds together, as one line of bytes, cut among the ranks by their quotas. Cuts fall on borders
// of pieces or of outer rows near the wanted place; into the next dimension only where a row is larger than the grain.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "schema/box.h"
#include "schema/layout.h"

namespace vckpt {

// A stretch of elements of one box of one tensor.
struct LineSegment {
  const TensorSpec* spec = nullptr;
  Box box;
  Range range;  // of the box
  std::uint64_t bytes() const;
};

// The element of the segment, a multiple of whole rows of its box where the grain allows it, nearest to `bytes` from
// the segment's begin. Within the range; a segment that cannot be cut there gives its nearer end.
std::uint64_t snap(const LineSegment& segment, std::uint64_t bytes, std::uint64_t grain_bytes);

// Hands a line out, segment by segment, to `quotas.size()` takers in order. Feed every segment once.
class LineCutter {
 public:
  LineCutter(std::vector<std::uint64_t> quotas, std::uint64_t grain_bytes);

  struct Part {
    std::size_t taker = 0;
    Range range;  // of the segment's box; all of the segment's range when nothing was cut
  };
  std::vector<Part> cut(const LineSegment& segment);

 private:
  std::vector<std::uint64_t> ends_;  // of each taker's quota, from the begin of the line
  std::uint64_t grain_bytes_;
  std::uint64_t position_ = 0;  // bytes handed out so far
  std::size_t taker_ = 0;
};

}  // namespace vckpt
