#include "coordinator/planner/byte_line.h"

#include <algorithm>

namespace vckpt {
namespace {

std::uint64_t bytes_of(const TensorSpec& spec, std::uint64_t count) { return box_bytes(spec.dtype, Box{{0}, {count}}); }

std::uint64_t distance(std::uint64_t a, std::uint64_t b) { return a > b ? a - b : b - a; }

// The fewest elements that fill whole bytes.
std::uint64_t byte_unit(DType dtype) {
  std::uint64_t unit = 1;
  while (unit * bits(dtype) % 8 != 0) ++unit;
  return unit;
}

}  // namespace

std::uint64_t LineSegment::bytes() const { return bytes_of(*spec, range.end - range.begin); }

std::uint64_t snap(const LineSegment& segment, std::uint64_t bytes, std::uint64_t grain_bytes) {
  const std::uint64_t length = segment.bytes();
  const Range range = segment.range;
  if (bytes >= length) return range.end;
  const std::uint64_t nearer_end = bytes <= length - bytes ? range.begin : range.end;
  if (std::min(bytes, length - bytes) <= grain_bytes / 2 || segment.box.sizes.empty()) return nearer_end;
  if (!byte_aligned(*segment.spec, segment.box)) return nearer_end;
  const std::uint64_t wanted = range.begin + bytes / bits(segment.spec->dtype) * 8 +
                               bytes % bits(segment.spec->dtype) * 8 / bits(segment.spec->dtype);
  std::uint64_t row = elements(segment.box);
  std::uint64_t best = nearer_end;
  const auto consider = [&](std::uint64_t place) {
    place = std::clamp(place, range.begin, range.end);
    if (distance(place, wanted) < distance(best, wanted)) best = place;
  };
  for (std::size_t dim = 0; dim < segment.box.sizes.size(); ++dim) {
    row /= segment.box.sizes[dim];
    const bool innermost = dim + 1 == segment.box.sizes.size();
    const std::uint64_t step = innermost ? byte_unit(segment.spec->dtype) : row;
    consider(wanted / step * step);
    consider((wanted / step + 1) * step);
    if (bytes_of(*segment.spec, distance(best, wanted)) <= grain_bytes / 2) break;
  }
  return best;
}

LineCutter::LineCutter(std::vector<std::uint64_t> quotas, std::uint64_t grain_bytes)
    : ends_(std::move(quotas)), grain_bytes_(grain_bytes) {
  std::uint64_t end = 0;
  for (auto& quota : ends_) quota = end += quota;
}

std::vector<LineCutter::Part> LineCutter::cut(const LineSegment& segment) {
  std::vector<Part> parts;
  const std::uint64_t length = segment.bytes();
  std::uint64_t cursor = segment.range.begin;
  while (cursor < segment.range.end) {
    while (taker_ + 1 < ends_.size() && ends_[taker_] <= position_) ++taker_;
    std::uint64_t end = segment.range.end;
    if (taker_ + 1 < ends_.size() && ends_[taker_] - position_ < length) {
      end = std::max(cursor, snap(segment, ends_[taker_] - position_, grain_bytes_));
    }
    if (end > cursor) parts.push_back(Part{taker_, Range{cursor, end}});
    cursor = end;
    if (cursor < segment.range.end) ++taker_;
  }
  position_ += length;
  return parts;
}

}  // namespace vckpt
