#include "runtime/memory.h"

#include <algorithm>
#include <cstring>

#include "schema/result.h"

namespace vckpt {
namespace {

// One dimension of a part as it lies in memory.
struct Axis {
  std::uint64_t size = 1;
  std::int64_t stride_bytes = 0;
};

std::byte* advance(std::byte* data, std::uint64_t count, std::int64_t stride_bytes) {
  return data + static_cast<std::int64_t>(count) * stride_bytes;
}

// The axes of `part` from the slowest to the fastest, without those of size 1, neighbours merged where one step of the
// slower is all of the faster. A contiguous part is one axis.
std::vector<Axis> merged_axes(const View& view, const Box& part) {
  std::vector<Axis> axes;
  for (std::size_t d = 0; d < part.sizes.size(); ++d) {
    if (part.sizes[d] == 1) continue;
    const Axis axis{part.sizes[d], view.strides_bytes[d]};
    if (!axes.empty() && axes.back().stride_bytes == static_cast<std::int64_t>(axis.size) * axis.stride_bytes) {
      axes.back() = Axis{axes.back().size * axis.size, axis.stride_bytes};
    } else {
      axes.push_back(axis);
    }
  }
  return axes;
}

template <std::size_t run_bytes>
void gather_rows(const Copy& copy, std::byte* packed, std::uint64_t rows) {
  const std::byte* from = copy.data;
  for (std::uint64_t row = 0; row < rows; ++row, from += copy.stride_bytes, packed += run_bytes) {
    std::memcpy(packed, from, run_bytes);
  }
}

template <std::size_t run_bytes>
void scatter_rows(const std::byte* packed, const Copy& copy, std::uint64_t rows) {
  std::byte* to = copy.data;
  for (std::uint64_t row = 0; row < rows; ++row, to += copy.stride_bytes, packed += run_bytes) {
    std::memcpy(to, packed, run_bytes);
  }
}

// Copies of a known width compile to single moves: a transposed tensor is all such rows.
void gather_whole(const Copy& copy, std::byte* packed) {
  switch (copy.run_bytes) {
    case 1: return gather_rows<1>(copy, packed, copy.rows);
    case 2: return gather_rows<2>(copy, packed, copy.rows);
    case 4: return gather_rows<4>(copy, packed, copy.rows);
    case 8: return gather_rows<8>(copy, packed, copy.rows);
    default: break;
  }
  for (std::uint64_t row = 0; row < copy.rows; ++row) {
    std::memcpy(packed + row * copy.run_bytes, advance(copy.data, row, copy.stride_bytes), copy.run_bytes);
  }
}

void scatter_whole(const std::byte* packed, const Copy& copy) {
  switch (copy.run_bytes) {
    case 1: return scatter_rows<1>(packed, copy, copy.rows);
    case 2: return scatter_rows<2>(packed, copy, copy.rows);
    case 4: return scatter_rows<4>(packed, copy, copy.rows);
    case 8: return scatter_rows<8>(packed, copy, copy.rows);
    default: break;
  }
  for (std::uint64_t row = 0; row < copy.rows; ++row) {
    std::memcpy(advance(copy.data, row, copy.stride_bytes), packed + row * copy.run_bytes, copy.run_bytes);
  }
}

// Calls `whole(copy, packed_offset)` for the pieces of the copies that lie in [begin, begin + length) of packed order:
// the rest of a row that began before, whole rows, and the start of a last row.
template <typename Whole>
void for_range(std::span<const Copy> copies, std::uint64_t begin, std::uint64_t length, Whole whole) {
  std::uint64_t done = 0;
  for (const Copy& copy : copies) {
    const std::uint64_t all = copy.run_bytes * copy.rows;
    if (begin >= all) {
      begin -= all;
      continue;
    }
    while (done < length && begin < all) {
      const std::uint64_t row = begin / copy.run_bytes;
      const std::uint64_t within = begin % copy.run_bytes;
      const std::uint64_t left = std::min(all - begin, length - done);
      Copy piece{advance(copy.data, row, copy.stride_bytes) + within, 0, 1, copy.stride_bytes};
      if (within == 0 && left >= copy.run_bytes) {
        piece.run_bytes = copy.run_bytes;
        piece.rows = left / copy.run_bytes;
      } else {
        piece.run_bytes = std::min(left, copy.run_bytes - within);
      }
      whole(piece, done);
      done += piece.run_bytes * piece.rows;
      begin += piece.run_bytes * piece.rows;
    }
    if (done == length) return;
    begin = 0;
  }
  VCKPT_ASSERT(done == length);
}

}  // namespace

std::vector<std::int64_t> dense_strides(const Dims& sizes, std::uint64_t element_bytes) {
  std::vector<std::int64_t> strides(sizes.size());
  std::uint64_t stride = element_bytes;
  for (std::size_t d = sizes.size(); d-- > 0;) {
    strides[d] = static_cast<std::int64_t>(stride);
    stride *= sizes[d];
  }
  return strides;
}

std::vector<Copy> copies(const View& view, const Box& box, const Box& part) {
  return element_copies(view, box, part, 1);
}

std::vector<Copy> element_copies(const View& view, const Box& box, const Box& part, std::uint64_t element_bytes) {
  std::vector<Copy> result;
  if (empty(part)) return result;
  VCKPT_ASSERT(view.strides_bytes.size() == part.sizes.size() && box.sizes.size() == part.sizes.size());
  VCKPT_ASSERT(contains(box, part) && view.data != nullptr);
  std::byte* start = view.data;
  for (std::size_t d = 0; d < part.sizes.size(); ++d) {
    start = advance(start, part.offsets[d] - box.offsets[d], view.strides_bytes[d]);
  }

  std::vector<Axis> axes = merged_axes(view, part);
  Copy block{start, element_bytes, 1, 0};
  if (!axes.empty() && axes.back().stride_bytes == static_cast<std::int64_t>(element_bytes)) {
    block.run_bytes *= axes.back().size;
    axes.pop_back();
  }
  if (!axes.empty()) {
    block.rows = axes.back().size;
    block.stride_bytes = axes.back().stride_bytes;
    axes.pop_back();
  }

  // What is left are slower axes: one copy for each of their positions, in row-major order.
  std::uint64_t count = 1;
  for (const Axis& axis : axes) count *= axis.size;
  result.reserve(count);
  Dims position(axes.size(), 0);
  for (std::uint64_t i = 0; i < count; ++i) {
    result.push_back(block);
    for (std::size_t d = axes.size(); d-- > 0;) {
      block.data += axes[d].stride_bytes;
      if (++position[d] < axes[d].size) break;
      block.data = advance(block.data, axes[d].size, -axes[d].stride_bytes);
      position[d] = 0;
    }
  }
  return result;
}

void gather(std::span<const Copy> source, std::span<std::byte> packed) {
  VCKPT_ASSERT(packed.size() == packed_bytes(source));
  std::uint64_t offset = 0;
  for (const Copy& copy : source) {
    gather_whole(copy, packed.data() + offset);
    offset += copy.run_bytes * copy.rows;
  }
}

void scatter(std::span<const std::byte> packed, std::span<const Copy> target) {
  VCKPT_ASSERT(packed.size() == packed_bytes(target));
  std::uint64_t offset = 0;
  for (const Copy& copy : target) {
    scatter_whole(packed.data() + offset, copy);
    offset += copy.run_bytes * copy.rows;
  }
}

void gather_range(std::span<const Copy> source, std::uint64_t begin_bytes, std::span<std::byte> packed) {
  for_range(source, begin_bytes, packed.size(),
            [packed](const Copy& piece, std::uint64_t offset) { gather_whole(piece, packed.data() + offset); });
}

void scatter_range(std::span<const std::byte> packed, std::uint64_t begin_bytes, std::span<const Copy> target) {
  for_range(target, begin_bytes, packed.size(),
            [packed](const Copy& piece, std::uint64_t offset) { scatter_whole(packed.data() + offset, piece); });
}

std::uint64_t packed_bytes(std::span<const Copy> copies) {
  std::uint64_t bytes = 0;
  for (const Copy& copy : copies) bytes += copy.run_bytes * copy.rows;
  return bytes;
}

}  // namespace vckpt
