#include "schema/box.h"

#include <algorithm>

#include "schema/checked.h"

namespace vckpt {
namespace {

constexpr std::uint64_t elements_max = 0x7FFFFFFFFFFFFFFF;

// Appends the boxes of [begin, end) inside the sub-box whose leading dimensions are fixed by `box` up to `dim`.
void append_boxes(Box& box, std::size_t dim, std::uint64_t begin, std::uint64_t end, const Dims& row_elements,
                  const Box& outer, std::vector<Box>& boxes) {
  if (begin == end) return;
  const std::uint64_t row = row_elements[dim];
  const auto push = [&](std::uint64_t first, std::uint64_t count) {
    Box part = box;
    part.offsets[dim] = outer.offsets[dim] + first;
    part.sizes[dim] = count;
    for (std::size_t d = dim + 1; d < outer.sizes.size(); ++d) {
      part.offsets[d] = outer.offsets[d];
      part.sizes[d] = outer.sizes[d];
    }
    boxes.push_back(std::move(part));
  };
  const auto descend = [&](std::uint64_t index, std::uint64_t from, std::uint64_t to) {
    box.offsets[dim] = outer.offsets[dim] + index;
    box.sizes[dim] = 1;
    append_boxes(box, dim + 1, from, to, row_elements, outer, boxes);
  };
  const std::uint64_t first = begin / row;
  const std::uint64_t last = end / row;
  if (begin % row == 0 && end % row == 0) return push(first, last - first);
  if (first == last) return descend(first, begin % row, end % row);
  std::uint64_t full = first;
  if (begin % row != 0) {
    descend(first, begin % row, row);
    ++full;
  }
  if (last > full) push(full, last - full);
  if (end % row != 0) descend(last, 0, end % row);
}

}  // namespace

Box whole(const Dims& shape) { return Box{Dims(shape.size(), 0), shape}; }

std::uint64_t elements(const Box& box) {
  std::uint64_t count = 1;
  for (const auto size : box.sizes) count *= size;
  return count;
}

Result<void> check_shape(const Dims& shape) {
  if (shape.size() > dims_max) {
    return invalid("shape has " + std::to_string(shape.size()) + " dimensions; at most " + std::to_string(dims_max));
  }
  const auto count = checked_product(shape);
  if (!count || *count > elements_max) return invalid("shape " + to_string(shape) + " has too many elements");
  return {};
}

Result<void> check_box(const Box& box, const Dims& shape) {
  if (box.offsets.size() != shape.size() || box.sizes.size() != shape.size()) {
    return invalid("box " + to_string(box.offsets) + "+" + to_string(box.sizes) + " does not have the " +
                   std::to_string(shape.size()) + " dimensions of shape " + to_string(shape));
  }
  for (std::size_t d = 0; d < shape.size(); ++d) {
    if (box.offsets[d] > shape[d] || box.sizes[d] > shape[d] - box.offsets[d]) {
      return invalid("box " + to_string(box.offsets) + "+" + to_string(box.sizes) + " leaves shape " +
                     to_string(shape) + " in dimension " + std::to_string(d));
    }
  }
  return {};
}

bool contains(const Box& outer, const Box& inner) {
  for (std::size_t d = 0; d < outer.sizes.size(); ++d) {
    if (inner.offsets[d] < outer.offsets[d]) return false;
    if (inner.offsets[d] + inner.sizes[d] > outer.offsets[d] + outer.sizes[d]) return false;
  }
  return true;
}

std::optional<Box> intersect(const Box& a, const Box& b) {
  Box common;
  common.offsets.resize(a.sizes.size());
  common.sizes.resize(a.sizes.size());
  for (std::size_t d = 0; d < a.sizes.size(); ++d) {
    const auto begin = std::max(a.offsets[d], b.offsets[d]);
    const auto end = std::min(a.offsets[d] + a.sizes[d], b.offsets[d] + b.sizes[d]);
    if (begin >= end) return std::nullopt;
    common.offsets[d] = begin;
    common.sizes[d] = end - begin;
  }
  return common;
}

Box cut(const Box& box, std::uint32_t dim, std::uint64_t parts, std::uint64_t index) {
  Box part = box;
  const std::uint64_t size = box.sizes[dim];
  const std::uint64_t chunk = divide_up(size, parts);
  // index < parts <= 2^32 and chunk <= size, yet their product may leave 64 bits for absurd sizes.
  const auto product = checked_multiply(chunk, index);
  const std::uint64_t begin = product ? std::min(size, *product) : size;
  part.offsets[dim] = box.offsets[dim] + begin;
  part.sizes[dim] = std::min(chunk, size - begin);
  return part;
}

std::vector<Box> to_boxes(const Box& box, Range range) {
  std::vector<Box> boxes;
  if (range.begin == range.end) return boxes;
  if (box.sizes.empty()) {
    boxes.push_back(box);
    return boxes;
  }
  Dims row_elements(box.sizes.size(), 1);
  for (std::size_t d = box.sizes.size() - 1; d-- > 0;) row_elements[d] = row_elements[d + 1] * box.sizes[d + 1];
  Box fixed = box;
  append_boxes(fixed, 0, range.begin, range.end, row_elements, box, boxes);
  return boxes;
}

std::string to_string(const Dims& dims) {
  std::string text = "[";
  for (std::size_t d = 0; d < dims.size(); ++d) {
    if (d != 0) text += ", ";
    text += std::to_string(dims[d]);
  }
  return text + "]";
}

std::string to_string(const Box& box) {
  if (box.sizes.empty()) return "scalar";
  std::string text;
  for (std::size_t d = 0; d < box.sizes.size(); ++d) {
    if (d != 0) text += "x";
    text += "[" + std::to_string(box.offsets[d]) + ", " + std::to_string(box.offsets[d] + box.sizes[d]) + ")";
  }
  return text;
}

std::string to_string(const Range& range) {
  return "[" + std::to_string(range.begin) + ", " + std::to_string(range.end) + ")";
}

}  // namespace vckpt
