#include "schema/slice.h"

#include <algorithm>

namespace vckpt {

std::vector<Box> slice_boxes(const TensorSpec& stored, const Slice& slice) {
  const Box piece = to_byte_box(stored, slice.piece);
  const Box target = to_byte_box(stored, slice.target);
  const std::uint64_t piece_bytes = elements(piece);
  const std::uint64_t begin = std::max(slice.begin_bytes, slice.piece_offset_bytes);
  const std::uint64_t end = std::min(slice.end_bytes, slice.piece_offset_bytes + piece_bytes);
  std::vector<Box> boxes;
  if (begin >= end) return boxes;
  const Range range{begin - slice.piece_offset_bytes, end - slice.piece_offset_bytes};
  for (const auto& box : to_boxes(piece, range)) {
    if (auto common = intersect(box, target)) boxes.push_back(std::move(*common));
  }
  return boxes;
}

std::uint64_t slice_bytes(const TensorSpec& stored, const Slice& slice) {
  std::uint64_t bytes = 0;
  for (const auto& box : slice_boxes(stored, slice)) bytes += elements(box);
  return bytes;
}

}  // namespace vckpt
