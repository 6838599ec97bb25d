// Strided views of memory, and copies between them and packed bytes. Geometry in bytes: a byte box (schema/layout.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "schema/box.h"

namespace vckpt {

// Where a box of a tensor lies in memory. `strides` are in bytes, one per dimension of the box in elements.
// `data` may be null only when the box is empty.
struct View {
  std::byte* data = nullptr;
  std::vector<std::int64_t> strides_bytes;
};

// Row-major strides in bytes for a box of these sizes.
std::vector<std::int64_t> dense_strides(const Dims& sizes, std::uint64_t element_bytes);

// One block of a strided copy: `rows` runs of `run_bytes`, `stride_bytes` apart, packed back to back on the other side.
struct Copy {
  std::byte* data = nullptr;
  std::uint64_t run_bytes = 0;
  std::uint64_t rows = 1;
  std::int64_t stride_bytes = 0;
};

// The copies that move `part` (a byte box inside `box`, both in byte geometry of one tensor) between the memory of
// `box` and packed bytes, in packed order. `view.strides_bytes` here counts a byte box: its last stride is 1. Element
// types wider than a byte have contiguous elements, whatever their stride: see element_view.
std::vector<Copy> copies(const View& view, const Box& box, const Box& part);

// As copies, for a view whose last dimension may be strided: `box` and `part` in elements.
std::vector<Copy> element_copies(const View& view, const Box& box, const Box& part, std::uint64_t element_bytes);

void gather(std::span<const Copy> source, std::span<std::byte> packed);
void scatter(std::span<const std::byte> packed, std::span<const Copy> target);

// Part of a copy list: `length_bytes` of packed order from `begin_bytes`.
void gather_range(std::span<const Copy> source, std::uint64_t begin_bytes, std::span<std::byte> packed);
void scatter_range(std::span<const std::byte> packed, std::uint64_t begin_bytes, std::span<const Copy> target);

std::uint64_t packed_bytes(std::span<const Copy> copies);

}  // namespace vckpt
