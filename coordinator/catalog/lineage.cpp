#include "lineage.h"

#include <algorithm>

#include "schema/names.h"

namespace vckpt {

bool Catalog::is_retired(const CheckpointId& id) const {
  return std::binary_search(retired.begin(), retired.end(), id);
}

bool Catalog::live(const Decision& decision) const {
  return decision.verdict == Verdict::commit && !is_retired(decision.id);
}

const Decision* Catalog::newest() const {
  const auto found =
      std::find_if(decisions.rbegin(), decisions.rend(), [this](const Decision& decision) { return live(decision); });
  return found == decisions.rend() ? nullptr : &*found;
}

std::vector<const Decision*> Catalog::ancestry() const {
  std::vector<const Decision*> line;
  for (const auto* next = newest(); next != nullptr;) {
    line.push_back(next);
    if (!next->parent || !(*next->parent < next->id)) break;  // a parent is older: no loops
    const auto* parent = find(*next->parent);
    next = parent != nullptr && parent->verdict == Verdict::commit ? parent : nullptr;
  }
  return line;
}

std::vector<const Decision*> Catalog::current_line() const {
  auto line = ancestry();
  std::erase_if(line, [this](const Decision* decision) { return is_retired(decision->id); });
  return line;
}

bool Catalog::abandoned(const Decision& decision) const {
  if (decision.verdict != Verdict::commit) return false;
  const auto line = ancestry();
  return std::none_of(line.begin(), line.end(), [&](const Decision* other) { return other->id == decision.id; });
}

const Decision* Catalog::find(const CheckpointId& id) const {
  const auto found =
      std::lower_bound(decisions.begin(), decisions.end(), id,
                       [](const Decision& decision, const CheckpointId& key) { return decision.id < key; });
  return found == decisions.end() || found->id != id ? nullptr : &*found;
}

namespace {

Error unreadable(const UnreadableDecision& record, const std::string& root) {
  return record.error.with_context(root + ": the decision of " + record.id.name() + " cannot be read");
}

Error was_retired(const CheckpointId& id, const std::string& root) {
  return not_found(root + ": " + id.name() + " was retired: newer ones are kept instead");
}

Result<const Decision*> resolve_newest(const Catalog& catalog, const std::string& root) {
  const auto* newest = catalog.newest();
  if (!catalog.unreadable.empty() && (newest == nullptr || newest->id < catalog.unreadable.back().id)) {
    return unreadable(catalog.unreadable.back(), root);
  }
  if (newest == nullptr) return not_found(root + ": there is no committed checkpoint");
  return newest;
}

Result<const Decision*> resolve_step(const Catalog& catalog, Step step, const std::string& root) {
  for (const auto* decision : catalog.current_line()) {
    if (decision->id.step == step) return decision;
  }
  for (auto decision = catalog.decisions.rbegin(); decision != catalog.decisions.rend(); ++decision) {
    if (catalog.live(*decision) && decision->id.step == step) return &*decision;
  }
  for (const auto& record : catalog.unreadable) {
    if (record.id.step == step) return unreadable(record, root);
  }
  for (auto id = catalog.retired.rbegin(); id != catalog.retired.rend(); ++id) {
    if (id->step == step) return was_retired(*id, root);
  }
  const auto* newest = catalog.newest();
  return not_found(root + ": no committed checkpoint has step " + std::to_string(step.value) +
                   (newest == nullptr ? "; there is none at all" : "; the newest is " + newest->id.name()));
}

Result<const Decision*> resolve_id(const Catalog& catalog, const CheckpointId& id, const std::string& root) {
  if (const auto* decision = catalog.find(id)) {
    if (catalog.live(*decision)) return decision;
    if (decision->verdict == Verdict::commit) return was_retired(id, root);
    return not_found(root + ": " + id.name() + " was aborted: " + decision->reason);
  }
  for (const auto& record : catalog.unreadable) {
    if (record.id == id) return unreadable(record, root);
  }
  if (std::binary_search(catalog.undecided.begin(), catalog.undecided.end(), id)) {
    return not_found(root + ": " + id.name() + " was begun and never decided");
  }
  return not_found(root + ": there is no checkpoint " + id.name());
}

}  // namespace

Result<const Decision*> resolve(const Catalog& catalog, const Selector& selector, const std::string& root) {
  if (const auto* step = std::get_if<Step>(&selector)) return resolve_step(catalog, *step, root);
  if (const auto* id = std::get_if<CheckpointId>(&selector)) return resolve_id(catalog, *id, root);
  return resolve_newest(catalog, root);
}

}  // namespace vckpt
