#include "coordinator/planner/cover.h"

#include <algorithm>
#include <map>
#include <numeric>

namespace vckpt {
namespace {

constexpr int split_depth_max = 128;           // deeper nests are compared pair by pair
constexpr std::size_t remainders_max = 20000;  // boxes kept while looking for a gap to name

struct Tile {
  Box box;
  std::size_t piece = 0;
};

using Tiles = std::vector<const Tile*>;

std::uint64_t begin_of(const Tile* tile, std::size_t dim) { return tile->box.offsets[dim]; }
std::uint64_t end_of(const Tile* tile, std::size_t dim) { return tile->box.offsets[dim] + tile->box.sizes[dim]; }

// Tiles that no plane across `dim` separates, in order of `dim`.
std::vector<Tiles> groups_along(Tiles tiles, std::size_t dim) {
  std::sort(tiles.begin(), tiles.end(),
            [&](const Tile* a, const Tile* b) { return begin_of(a, dim) < begin_of(b, dim); });
  std::vector<Tiles> groups;
  std::uint64_t end = 0;
  for (const auto* tile : tiles) {
    if (groups.empty() || begin_of(tile, dim) >= end) groups.emplace_back();
    groups.back().push_back(tile);
    end = std::max(end, end_of(tile, dim));
  }
  return groups;
}

Range span_along(const Tiles& tiles, std::size_t dim) {
  Range span{begin_of(tiles.front(), dim), end_of(tiles.front(), dim)};
  for (const auto* tile : tiles) {
    span.begin = std::min(span.begin, begin_of(tile, dim));
    span.end = std::max(span.end, end_of(tile, dim));
  }
  return span;
}

Box with_span(Box box, std::size_t dim, Range span) {
  box.offsets[dim] = span.begin;
  box.sizes[dim] = span.end - span.begin;
  return box;
}

// What `box` has outside of `hole`, which lies within it or crosses it, as disjoint boxes.
void append_outside(Box box, const Box& hole, std::vector<Box>& outside) {
  const auto common = intersect(box, hole);
  if (!common) {
    outside.push_back(std::move(box));
    return;
  }
  for (std::size_t d = 0; d < box.sizes.size(); ++d) {
    const Range all{box.offsets[d], box.offsets[d] + box.sizes[d]};
    const Range kept{common->offsets[d], common->offsets[d] + common->sizes[d]};
    if (all.begin < kept.begin) outside.push_back(with_span(box, d, Range{all.begin, kept.begin}));
    if (kept.end < all.end) outside.push_back(with_span(box, d, Range{kept.end, all.end}));
    box = with_span(std::move(box), d, kept);
  }
}

std::optional<Box> find_hole(const Box& region, const Tiles& tiles) {
  std::vector<Box> remaining{region};
  for (const auto* tile : tiles) {
    std::vector<Box> next;
    for (auto& box : remaining) append_outside(std::move(box), tile->box, next);
    remaining = std::move(next);
    if (remaining.empty()) return std::nullopt;
    if (remaining.size() > remainders_max) return region;
  }
  return *std::min_element(remaining.begin(), remaining.end());
}

std::optional<CoverFault> find_overlap(Tiles tiles) {
  if (tiles.front()->box.sizes.empty()) {
    if (tiles.size() < 2) return std::nullopt;
    return CoverFault{tiles[0]->box, 1, true, tiles[0]->piece, tiles[1]->piece};
  }
  std::sort(tiles.begin(), tiles.end(), [](const Tile* a, const Tile* b) { return a->box.offsets < b->box.offsets; });
  Tiles active;
  for (const auto* tile : tiles) {
    std::erase_if(active, [&](const Tile* other) { return end_of(other, 0) <= begin_of(tile, 0); });
    for (const auto* other : active) {
      if (auto common = intersect(other->box, tile->box)) {
        const auto count = elements(*common);
        return CoverFault{std::move(*common), count, true, other->piece, tile->piece};
      }
    }
    active.push_back(tile);
  }
  return std::nullopt;
}

CoverFault gap(Box box) {
  const auto count = elements(box);
  return CoverFault{std::move(box), count, false, 0, 0};
}

// The tiles lie within the region, which is not empty.
std::optional<CoverFault> find_fault(const Box& region, const Tiles& tiles, int depth) {
  if (tiles.empty()) return gap(region);
  if (tiles.size() == 1 && tiles.front()->box == region) return std::nullopt;
  for (std::size_t dim = 0; dim < region.sizes.size() && depth < split_depth_max; ++dim) {
    const Range bounds{region.offsets[dim], region.offsets[dim] + region.sizes[dim]};
    const auto groups = groups_along(tiles, dim);
    std::uint64_t cursor = bounds.begin;
    for (const auto& group : groups) {
      const Range span = span_along(group, dim);
      if (span.begin > cursor) return gap(with_span(region, dim, Range{cursor, span.begin}));
      cursor = span.end;
    }
    if (cursor < bounds.end) return gap(with_span(region, dim, Range{cursor, bounds.end}));
    if (groups.size() == 1) continue;
    for (const auto& group : groups) {
      if (auto fault = find_fault(with_span(region, dim, span_along(group, dim)), group, depth + 1)) return fault;
    }
    return std::nullopt;
  }
  if (auto overlap = find_overlap(tiles)) return overlap;
  unsigned __int128 covered = 0;
  for (const auto* tile : tiles) covered += elements(tile->box);
  if (covered == elements(region)) return std::nullopt;
  return gap(find_hole(region, tiles).value_or(region));
}

// Ranges of one box in one dimension: an overlap, or whether they are complete.
struct RangeCover {
  std::optional<CoverFault> overlap;
  bool complete = false;
};

RangeCover cover_ranges(const Box& box, std::vector<std::pair<Range, std::size_t>>& ranges) {
  std::sort(ranges.begin(), ranges.end());
  std::uint64_t cursor = 0;
  bool complete = true;
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    const Range range = ranges[i].first;
    if (range.begin < cursor) {
      const Range common{range.begin, std::min(cursor, range.end)};
      return {CoverFault{to_boxes(box, common).front(), common.end - common.begin, true, ranges[i - 1].second,
                         ranges[i].second},
              false};
    }
    complete = complete && range.begin == cursor;
    cursor = range.end;
  }
  return {std::nullopt, complete && cursor == elements(box)};
}

std::uint64_t union_of(const Tiles& tiles, int depth) {
  if (tiles.size() == 1) return elements(tiles.front()->box);
  for (std::size_t dim = 0; dim < tiles.front()->box.sizes.size() && depth < split_depth_max; ++dim) {
    const auto groups = groups_along(tiles, dim);
    if (groups.size() == 1) continue;
    std::uint64_t count = 0;
    for (const auto& group : groups) count += union_of(group, depth + 1);
    return count;
  }
  std::vector<Box> disjoint;
  for (const auto* tile : tiles) {
    std::vector<Box> parts{tile->box};
    for (std::size_t i = 0; i < disjoint.size() && !parts.empty(); ++i) {
      std::vector<Box> next;
      for (auto& part : parts) append_outside(std::move(part), disjoint[i], next);
      parts = std::move(next);
    }
    disjoint.insert(disjoint.end(), parts.begin(), parts.end());
  }
  return std::accumulate(disjoint.begin(), disjoint.end(), std::uint64_t{0},
                         [](std::uint64_t sum, const Box& box) { return sum + elements(box); });
}

}  // namespace

std::optional<CoverFault> find_cover_fault(const Dims& shape, const std::vector<CoverPiece>& pieces) {
  const Box region = whole(shape);
  std::vector<Tile> tiles;
  std::map<Box, std::vector<std::pair<Range, std::size_t>>> by_box;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    if (pieces[i].range) {
      by_box[pieces[i].box].emplace_back(*pieces[i].range, i);
    } else {
      tiles.push_back(Tile{pieces[i].box, i});
    }
  }
  for (auto& [box, ranges] : by_box) {
    auto cover = cover_ranges(box, ranges);
    if (cover.overlap) return cover.overlap;
    if (cover.complete) {
      tiles.push_back(Tile{box, ranges.front().second});
      continue;
    }
    for (const auto& [range, piece] : ranges) {
      for (auto& part : to_boxes(box, range)) tiles.push_back(Tile{std::move(part), piece});
    }
  }
  if (empty(region)) return std::nullopt;
  Tiles all;
  for (const auto& tile : tiles) all.push_back(&tile);
  auto fault = find_fault(region, all, 0);
  if (fault && !fault->overlap) {
    std::vector<Box> boxes;
    for (auto& tile : tiles) boxes.push_back(std::move(tile.box));
    fault->elements = elements(region) - union_elements(std::move(boxes));
  }
  return fault;
}

std::uint64_t union_elements(std::vector<Box> boxes) {
  std::sort(boxes.begin(), boxes.end());
  boxes.erase(std::unique(boxes.begin(), boxes.end()), boxes.end());
  std::erase_if(boxes, [](const Box& box) { return empty(box); });
  if (boxes.empty()) return 0;
  std::vector<Tile> tiles;
  tiles.reserve(boxes.size());
  for (auto& box : boxes) tiles.push_back(Tile{std::move(box), 0});
  Tiles all;
  for (const auto& tile : tiles) all.push_back(&tile);
  return union_of(all, 0);
}

}  // namespace vckpt
