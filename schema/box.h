// Boxes and flat ranges of a global tensor, in elements, half-open. A Box with no dimensions is a scalar's only box and
// holds one element. Row-major order throughout: the last dimension runs fastest.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "result.h"

namespace vckpt {

using Dims = std::vector<std::uint64_t>;

constexpr std::size_t dims_max = 32;

struct Box {
  Dims offsets;
  Dims sizes;  // as many as offsets
  auto operator<=>(const Box&) const = default;
};

// Elements [begin, end) of a Box in row-major order: what a ZeRO or FSDP shard holds.
struct Range {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  auto operator<=>(const Range&) const = default;
};

Box whole(const Dims& shape);

// Product of the sizes. The box must be valid within a shape whose element count fits (check_shape).
std::uint64_t elements(const Box& box);
inline bool empty(const Box& box) { return elements(box) == 0; }

// invalid: more than dims_max dimensions, or an element count above 2^63 - 1.
Result<void> check_shape(const Dims& shape);
// invalid: another number of dimensions than the shape, or a part outside of it. Empty boxes may start at the end.
Result<void> check_box(const Box& box, const Dims& shape);

bool contains(const Box& outer, const Box& inner);
// The common box; nothing when it is empty. Both have equally many dimensions.
std::optional<Box> intersect(const Box& a, const Box& b);

// Part `index` of ceil(size / parts)-sized chunks along `dim`, as DTensor's Shard makes them; trailing parts may be
// smaller, or empty (then at the end of the dimension).
Box cut(const Box& box, std::uint32_t dim, std::uint64_t parts, std::uint64_t index);

// The range as boxes: consecutive in row-major order of the range, at most 2(k-1)+1 of them for k dimensions; none when
// it is empty. 0 <= begin <= end <= elements(box).
std::vector<Box> to_boxes(const Box& box, Range range);

std::string to_string(const Dims& dims);    // `[4, 6]`
std::string to_string(const Box& box);      // `[0, 3)x[2, 4)`; `scalar`
std::string to_string(const Range& range);  // `[3, 9)`

}  // namespace vckpt
