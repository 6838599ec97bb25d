#include "tests/planner/random_placements.h"

#include <algorithm>
#include <string>

namespace vckpt {
namespace {

struct Spread {
  Random& random;
  std::vector<std::uint32_t> extents;  // of the mesh
  std::vector<LayoutBody> bodies;      // of each rank
  std::vector<Coordinates> coordinates;

  std::uint32_t world() const { return static_cast<std::uint32_t>(bodies.size()); }

  std::uint32_t number(std::uint32_t rank, const TensorSpec& spec) {
    auto& tensors = bodies[rank].tensors;
    const auto known = std::find(tensors.begin(), tensors.end(), spec);
    if (known != tensors.end()) return static_cast<std::uint32_t>(known - tensors.begin());
    tensors.push_back(spec);
    return static_cast<std::uint32_t>(tensors.size() - 1);
  }

  void add(std::uint32_t rank, const TensorSpec& spec, Entry entry) {
    entry.tensor = number(rank, spec);
    bodies[rank].entries.push_back(std::move(entry));
  }

  std::vector<std::uint32_t> some_ranks() {
    std::vector<std::uint32_t> ranks;
    for (std::uint32_t rank = 0; rank < world(); ++rank) {
      if (below(random, 2) == 0) ranks.push_back(rank);
    }
    if (ranks.empty()) ranks.push_back(static_cast<std::uint32_t>(below(random, world())));
    return ranks;
  }

  std::vector<Cut> random_cuts(const TensorSpec& spec, bool spare_axis) {
    std::vector<Cut> cuts;
    for (std::uint32_t axis = spare_axis ? 1 : 0; axis < extents.size(); ++axis) {
      if (spec.shape.empty() || below(random, 3) == 0) continue;
      cuts.push_back(Cut{static_cast<std::uint32_t>(below(random, spec.shape.size())), extents[axis], axis});
    }
    std::shuffle(cuts.begin(), cuts.end(), random);
    return cuts;
  }

  void grid(const TensorSpec& spec) {
    const auto cuts = random_cuts(spec, false);
    for (std::uint32_t rank = 0; rank < world(); ++rank) add(rank, spec, Entry{0, {}, cuts, {}});
  }

  // Inside of the boxes of a grid over the other axes, ranges along the first axis.
  void ranges_in_boxes(const TensorSpec& spec) {
    const auto cuts = random_cuts(spec, true);
    for (std::uint32_t rank = 0; rank < world(); ++rank) {
      Entry entry{0, {}, cuts, {}};
      const LayoutBody one{{spec}, {}};
      const std::uint64_t count = elements(cut_box(one, entry, coordinates[rank]));
      const std::uint64_t part = (count + extents[0] - 1) / extents[0];
      const std::uint64_t begin = std::min(count, part * coordinates[rank][0]);
      entry.range = Range{begin, std::min(count, begin + part)};
      add(rank, spec, std::move(entry));
    }
  }

  void boxes(const TensorSpec& spec) {
    std::vector<Box> parts{whole(spec.shape)};
    for (int i = 0; i < 6 && !spec.shape.empty(); ++i) {
      const std::size_t which = below(random, parts.size());
      const std::size_t dim = below(random, spec.shape.size());
      Box& box = parts[which];
      if (box.sizes[dim] < 2) continue;
      const std::uint64_t at = 1 + below(random, box.sizes[dim] - 1);
      Box rest = box;
      rest.offsets[dim] += at;
      rest.sizes[dim] -= at;
      box.sizes[dim] = at;
      parts.push_back(std::move(rest));
    }
    for (const auto& box : parts) {
      for (const auto rank : some_ranks()) add(rank, spec, Entry{0, box, {}, {}});
    }
  }

  void on_some(const TensorSpec& spec) {
    for (const auto rank : some_ranks()) add(rank, spec, Entry{});
  }

  // One flat buffer over several tensors, cut at random places.
  void bucket(const std::vector<TensorSpec>& specs) {
    std::uint64_t total = 0;
    for (const auto& spec : specs) total += elements(whole(spec.shape));
    std::vector<std::uint64_t> borders{0, total};
    for (std::uint32_t rank = 1; rank < world(); ++rank) borders.push_back(below(random, total + 1));
    std::sort(borders.begin(), borders.end());
    for (std::uint32_t rank = 0; rank < world(); ++rank) {
      std::uint64_t cursor = 0;
      for (const auto& spec : specs) {
        const std::uint64_t count = elements(whole(spec.shape));
        const std::uint64_t begin = std::clamp(borders[rank], cursor, cursor + count) - cursor;
        const std::uint64_t end = std::clamp(borders[rank + 1], cursor, cursor + count) - cursor;
        cursor += count;
        add(rank, spec, Entry{0, {}, {}, Range{begin, end}});
      }
    }
  }
};

}  // namespace

std::uint64_t below(Random& random, std::uint64_t bound) { return random() % bound; }

std::vector<TensorSpec> random_tensors(Random& random, std::size_t count) {
  static constexpr DType dtypes[] = {DType::u8, DType::bf16, DType::f32, DType::f64, DType::c128, DType::boolean};
  std::vector<TensorSpec> tensors;
  for (std::size_t i = 0; i < count; ++i) {
    TensorSpec spec{"t" + std::to_string(i), dtypes[below(random, std::size(dtypes))], {}};
    const std::size_t dims = below(random, 5);
    for (std::size_t d = 0; d < dims; ++d) spec.shape.push_back(below(random, 12) == 0 ? 0 : 1 + below(random, 7));
    tensors.push_back(std::move(spec));
  }
  return tensors;
}

SectionPlacement random_placement(Random& random, const std::string& section, const std::vector<TensorSpec>& tensors,
                                  std::uint32_t world_size) {
  Spread spread{random, {}, std::vector<LayoutBody>(world_size), std::vector<Coordinates>(world_size)};
  std::uint32_t rest = world_size;
  while (rest > 1) {
    std::uint32_t extent = 1 + static_cast<std::uint32_t>(below(random, rest));
    while (rest % extent != 0) ++extent;
    if (extent > 1) spread.extents.push_back(extent);
    rest /= extent;
  }
  spread.extents.push_back(1);
  std::uint32_t stride = 1;
  for (const auto extent : spread.extents) {
    for (std::uint32_t rank = 0; rank < world_size; ++rank) spread.coordinates[rank].push_back(rank / stride % extent);
    stride *= extent;
  }
  std::vector<TensorSpec> bucketed;
  for (const auto& spec : tensors) {
    switch (below(random, 6)) {
      case 0: spread.boxes(spec); break;
      case 1: spread.on_some(spec); break;
      case 2: bucketed.push_back(spec); break;
      case 3: spread.ranges_in_boxes(spec); break;
      default: spread.grid(spec); break;
    }
  }
  spread.bucket(bucketed);
  SectionPlacement placement{section, {}};
  for (std::uint32_t rank = 0; rank < world_size; ++rank) {
    placement.placement.layouts.push_back(
        Layout{std::make_shared<const LayoutBody>(std::move(spread.bodies[rank])), spread.coordinates[rank]});
  }
  return placement;
}

void disturb(Random& random, SectionPlacement& placement) {
  auto& layouts = placement.placement.layouts;
  auto& layout = layouts[below(random, layouts.size())];
  LayoutBody body = *layout.body;
  if (body.entries.empty()) return;
  const std::size_t which = below(random, body.entries.size());
  Entry& entry = body.entries[which];
  const Held piece = held(body, entry, layout.coordinates);
  switch (below(random, 4)) {
    case 0: body.entries.erase(body.entries.begin() + static_cast<std::ptrdiff_t>(which)); break;
    case 1: body.entries.push_back(body.entries[which]); break;
    case 2: {
      const std::uint64_t count = elements(piece.box);
      const std::uint64_t begin = below(random, count + 1);
      entry.range = Range{begin, begin + below(random, count - begin + 1)};
      break;
    }
    default: {
      if (piece.box.sizes.empty()) break;
      entry.cuts.clear();
      entry.range.reset();
      entry.box = piece.box;
      const std::size_t dim = below(random, piece.box.sizes.size());
      if (entry.box->sizes[dim] > 0) --entry.box->sizes[dim];
      break;
    }
  }
  layout.body = std::make_shared<const LayoutBody>(std::move(body));
}

}  // namespace vckpt
