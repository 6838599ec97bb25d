#include "worker/state.h"

#include <algorithm>

namespace vckpt {

SectionState::SectionState() : contents_(std::make_unique<Contents>()) {}
SectionState::~SectionState() = default;
SectionState::SectionState(SectionState&&) noexcept = default;
SectionState& SectionState::operator=(SectionState&&) noexcept = default;

SectionState& SectionState::add(TensorSpec spec, Box box, Memory memory) {
  contents_->tensors.push_back({std::move(spec), std::move(box), {}, {}, std::move(memory)});
  return *this;
}

SectionState& SectionState::add(TensorSpec spec, Box box, Range range, Memory memory) {
  contents_->tensors.push_back({std::move(spec), std::move(box), {}, range, std::move(memory)});
  return *this;
}

SectionState& SectionState::add(TensorSpec spec, std::vector<Cut> cuts, Memory memory) {
  contents_->tensors.push_back({std::move(spec), {}, std::move(cuts), {}, std::move(memory)});
  return *this;
}

SectionState& SectionState::add(TensorSpec spec, std::vector<Cut> cuts, Range range, Memory memory) {
  contents_->tensors.push_back({std::move(spec), {}, std::move(cuts), range, std::move(memory)});
  return *this;
}

SectionState& SectionState::at(Coordinates coordinates) {
  contents_->coordinates = std::move(coordinates);
  return *this;
}

SectionState& SectionState::item(std::string name, Value value, Scope scope) {
  auto& items = contents_->items;
  const auto same = std::find_if(items.begin(), items.end(), [&](const HeldItem& held) { return held.name == name; });
  if (same == items.end()) {
    items.push_back({std::move(name), std::move(value), scope});
  } else {
    *same = {std::move(name), std::move(value), scope};
  }
  return *this;
}

const Value* SectionState::find_item(std::string_view name) const {
  for (const auto& held : contents_->items) {
    if (held.name == name) return &held.value;
  }
  return nullptr;
}

State::State() : sections_(std::make_unique<Sections>()) {}
State::~State() = default;
State::State(State&&) noexcept = default;
State& State::operator=(State&&) noexcept = default;

SectionState& State::section(std::string_view name) { return sections_->by_name[std::string(name)]; }

std::vector<std::string> State::sections() const {
  std::vector<std::string> names;
  for (const auto& [name, section] : sections_->by_name) names.push_back(name);
  return names;
}

const SectionState* State::find(std::string_view name) const {
  const auto found = sections_->by_name.find(name);
  return found == sections_->by_name.end() ? nullptr : &found->second;
}

}  // namespace vckpt
