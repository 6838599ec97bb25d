// Exact cover: whether the pieces of a tensor hold every element once. Ranges are checked in one dimension inside their
// box; a box whose ranges are complete counts as the box. Boxes are split along planes that no box crosses, dimension
// by dimension, and only what cannot be split is compared pair by pair: O(n log n) for everything that cuts of a mesh
// make.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "schema/box.h"

namespace vckpt {

// A non-empty piece; distinct from all others of its tensor.
struct CoverPiece {
  Box box;
  std::optional<Range> range;  // of the box; never all of it
};

struct CoverFault {
  Box box;                     // the first elements that nobody holds, or that two pieces hold
  std::uint64_t elements = 0;  // how many nobody holds in all; how many those two pieces share
  bool overlap = false;
  std::size_t first_piece = 0;  // overlap: the two pieces, by index
  std::size_t second_piece = 0;
};

// Nothing when every element of the shape is in exactly one piece. The pieces lie within the shape.
std::optional<CoverFault> find_cover_fault(const Dims& shape, const std::vector<CoverPiece>& pieces);

// How many elements are in at least one of the boxes, which may overlap; all have equally many dimensions.
std::uint64_t union_elements(std::vector<Box> boxes);

}  // namespace vckpt
