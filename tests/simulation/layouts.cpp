#include "tests/simulation/layouts.h"

#include <memory>
#include <string>
#include <utility>

#include "tests/planner/random_placements.h"

namespace vckpt {
namespace {

SectionPlacement same_body(std::string section, LayoutBody body, std::uint32_t ranks) {
  SectionPlacement placement{std::move(section), {}};
  const auto shared = std::make_shared<const LayoutBody>(std::move(body));
  for (std::uint32_t rank = 0; rank < ranks; ++rank) placement.placement.layouts.push_back({shared, {rank}});
  return placement;
}

}  // namespace

std::vector<SectionPlacement> plain_layout(std::uint32_t ranks) {
  LayoutBody model;
  model.tensors = {{"layers.0.weight", DType::bf16, {13, 40}},
                   {"layers.0.norm", DType::f32, {300}},
                   {"scale", DType::f64, {}},
                   {"packed", DType::i4, {33, 10}}};
  model.entries = {{0, {}, {{0, ranks, 0}}, {}}, {1, {}, {}, {}}, {2, {}, {}, {}}, {3, {}, {}, {}}};
  const TensorSpec moment{"moment", DType::f32, {13, 40}};
  SectionPlacement optimizer{"optimizer", {}};
  for (std::uint64_t rank = 0; rank < ranks; ++rank) {
    const std::uint64_t count = elements(whole(moment.shape));
    LayoutBody body{{moment}, {{0, {}, {}, Range{count * rank / ranks, count * (rank + 1) / ranks}}}};
    optimizer.placement.layouts.push_back({std::make_shared<const LayoutBody>(std::move(body)), {}});
  }
  return {same_body("model", std::move(model), ranks), std::move(optimizer)};
}

MakeLayout random_layout(std::uint64_t tensor_seed, std::uint64_t spread_seed) {
  return [tensor_seed, spread_seed](std::uint32_t ranks) {
    Random tensors(tensor_seed);
    Random spread(spread_seed);
    std::vector<SectionPlacement> sections;
    for (const auto* name : {"extra", "model", "optimizer"}) {
      sections.push_back(random_placement(spread, name, random_tensors(tensors, 1 + below(tensors, 7)), ranks));
    }
    return sections;
  };
}

MakeLayout large_layout(std::uint64_t mib) {
  return [mib](std::uint32_t ranks) {
    LayoutBody body;
    for (std::uint32_t index = 0; index < mib; ++index) {
      body.tensors.push_back({"layers." + std::to_string(index), DType::f32, {256, 1024}});
      body.entries.push_back({index, {}, {{1, ranks, 0}}, {}});
    }
    return std::vector<SectionPlacement>{same_body("model", std::move(body), ranks)};
  };
}

}  // namespace vckpt
