// What a State holds inside: the calls that built it, in their order, unchecked. tensor_table.h checks and sorts them.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "vckpt/worker.h"

namespace vckpt {

// One SectionState::add.
struct HeldTensor {
  TensorSpec spec;
  std::optional<Box> box;
  std::vector<Cut> cuts;
  std::optional<Range> range;
  Memory memory;
};

// One SectionState::item.
struct HeldItem {
  std::string name;
  Value value;
  Scope scope = Scope::replicated;
};

struct SectionState::Contents {
  std::vector<HeldTensor> tensors;
  Coordinates coordinates;
  std::vector<HeldItem> items;
};

struct State::Sections {
  std::map<std::string, SectionState, std::less<>> by_name;
};

}  // namespace vckpt
