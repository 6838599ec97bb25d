#include "launch/held_state.h"

#include <cstring>
#include <span>

namespace vckpt::launch {

namespace {

constexpr int untouched = 0xA5;
constexpr const char* step_item = "step";

}  // namespace

HeldState::HeldState(const std::vector<SectionPlacement>& sections, Rank rank) {
  for (const auto& placement : sections) {
    const auto& layout = placement.placement.layouts.at(rank.value);
    auto& section = state_.section(placement.section);
    section.at(layout.coordinates);
    for (const auto& entry : layout.body->entries) {
      const auto& spec = layout.body->tensors[entry.tensor];
      auto piece = Piece{placement.section, spec, held(*layout.body, entry, layout.coordinates), nullptr, 0};
      piece.length_bytes = Content::held_bytes(spec, piece.held);
      piece.memory.reset(new std::byte[piece.length_bytes]);
      std::memset(piece.memory.get(), untouched, piece.length_bytes);
      if (entry.range) {
        section.add(spec, entry.cuts, *entry.range, piece.memory.get());
      } else {
        section.add(spec, entry.cuts, piece.memory.get());
      }
      pieces_.push_back(std::move(piece));
    }
  }
  state_.section("model").item(step_item, Value{std::int64_t{-1}});
}

void HeldState::fill(const Content& content, Step step) {
  for (const auto& piece : pieces_) content.fill(piece.spec, piece.held, {piece.memory.get(), piece.length_bytes});
  state_.section("model").item(step_item, Value{static_cast<std::int64_t>(step.value)});
}

std::optional<std::string> HeldState::first_difference(const Content& content, Step step) const {
  for (const auto& piece : pieces_) {
    const auto at = content.first_difference(piece.spec, piece.held, {piece.memory.get(), piece.length_bytes});
    if (!at) continue;
    auto text = "section " + piece.section + ", " + piece.spec.fqn + " " + to_string(piece.held.box);
    if (piece.held.range) text += " range " + to_string(*piece.held.range);
    return text + ": byte " + std::to_string(*at) + " of " + std::to_string(piece.length_bytes) + " differs";
  }
  const auto* item = state_.find("model")->find_item(step_item);
  if (item == nullptr || *item != Value{static_cast<std::int64_t>(step.value)}) {
    return std::string("section model, item ") + step_item + ": not " + std::to_string(step.value);
  }
  return std::nullopt;
}

std::uint64_t HeldState::bytes() const {
  std::uint64_t bytes = 0;
  for (const auto& piece : pieces_) bytes += piece.length_bytes;
  return bytes;
}

}  // namespace vckpt::launch
