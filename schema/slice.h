// A slice: the part of a stored piece that lies in one byte range of its file and that one target box wants. Reader and
// receiver both derive from it, in the same order, which bytes travel; so the plan never lists single copies.
#pragma once

#include <cstdint>
#include <vector>

#include "box.h"
#include "layout.h"

namespace vckpt {

struct Slice {
  std::uint32_t tensor = 0;              // index into the plan's stored tensor table
  Box piece;                             // the stored box, in elements of the global tensor
  std::uint64_t piece_offset_bytes = 0;  // of the piece, from the data start of its file
  std::uint64_t begin_bytes = 0;         // the byte range of the file's data that was read
  std::uint64_t end_bytes = 0;
  Box target;  // the wanted box, in elements of the global tensor as stored
  bool operator==(const Slice&) const = default;
};

// The bytes of the slice as byte boxes (to_byte_box geometry of the stored tensor, global coordinates), in packing
// order: by the piece's own row-major order cut into boxes, each intersected with the target.
std::vector<Box> slice_boxes(const TensorSpec& stored, const Slice& slice);
std::uint64_t slice_bytes(const TensorSpec& stored, const Slice& slice);

}  // namespace vckpt
