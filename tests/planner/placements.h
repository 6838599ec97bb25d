// Short ways to write down who holds what.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "coordinator/planner/save_planner.h"
#include "schema/layout.h"

namespace vckpt {

// A mesh whose ranks are numbered row-major; all of them share one body, with one slot per axis.
class Mesh {
 public:
  Mesh(std::string section, std::vector<std::uint32_t> extents);
  Mesh& add(TensorSpec spec, std::vector<Cut> cuts = {});
  SectionPlacement placement() const;

 private:
  std::string section_;
  std::vector<std::uint32_t> extents_;
  LayoutBody body_;
};

// Ranks with a body each.
class Pieces {
 public:
  Pieces(std::string section, std::uint32_t world_size);
  Pieces& add(std::uint32_t rank, const TensorSpec& spec, std::optional<Box> box = {}, std::optional<Range> range = {});
  SectionPlacement placement() const;

 private:
  std::string section_;
  std::vector<LayoutBody> bodies_;
};

// The bytes that each rank persists.
std::vector<std::uint64_t> loads(const SavePlan& plan);

}  // namespace vckpt
