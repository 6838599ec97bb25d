#include "tests/planner/placements.h"

#include <algorithm>

namespace vckpt {

Mesh::Mesh(std::string section, std::vector<std::uint32_t> extents)
    : section_(std::move(section)), extents_(std::move(extents)) {}

Mesh& Mesh::add(TensorSpec spec, std::vector<Cut> cuts) {
  for (auto& step : cuts) step.parts = extents_[step.slot];
  body_.entries.push_back(Entry{static_cast<std::uint32_t>(body_.tensors.size()), {}, std::move(cuts), {}});
  body_.tensors.push_back(std::move(spec));
  return *this;
}

SectionPlacement Mesh::placement() const {
  const auto body = std::make_shared<const LayoutBody>(body_);
  std::uint32_t world = 1;
  for (const auto extent : extents_) world *= extent;
  SectionPlacement placement{section_, {}};
  for (std::uint32_t rank = 0; rank < world; ++rank) {
    Coordinates coordinates(extents_.size());
    std::uint32_t rest = rank;
    for (std::size_t axis = extents_.size(); axis-- > 0;) {
      coordinates[axis] = rest % extents_[axis];
      rest /= extents_[axis];
    }
    placement.placement.layouts.push_back(Layout{body, std::move(coordinates)});
  }
  return placement;
}

Pieces::Pieces(std::string section, std::uint32_t world_size) : section_(std::move(section)), bodies_(world_size) {}

Pieces& Pieces::add(std::uint32_t rank, const TensorSpec& spec, std::optional<Box> box, std::optional<Range> range) {
  LayoutBody& body = bodies_[rank];
  auto known = std::find_if(body.tensors.begin(), body.tensors.end(), [&](const auto& t) { return t.fqn == spec.fqn; });
  if (known == body.tensors.end()) known = body.tensors.insert(known, spec);
  body.entries.push_back(Entry{static_cast<std::uint32_t>(known - body.tensors.begin()), std::move(box), {}, range});
  return *this;
}

SectionPlacement Pieces::placement() const {
  SectionPlacement placement{section_, {}};
  for (const auto& body : bodies_) {
    placement.placement.layouts.push_back(Layout{std::make_shared<const LayoutBody>(body), {}});
  }
  return placement;
}

std::vector<std::uint64_t> loads(const SavePlan& plan) {
  std::vector<std::uint64_t> bytes(plan.world_size(), 0);
  for (const auto& section : plan.sections) {
    for (std::uint32_t rank = 0; rank < bytes.size(); ++rank)
      bytes[rank] += data_bytes(file_pieces(section, Rank(rank)));
  }
  return bytes;
}

}  // namespace vckpt
