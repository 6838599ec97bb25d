#include "coordinator/catalog/retention.h"

#include <algorithm>
#include <set>

namespace vckpt {

std::vector<CheckpointId> to_retire(const Catalog& catalog, std::uint32_t keep) {
  VCKPT_ASSERT(keep > 0);
  const auto line = catalog.current_line();
  if (line.size() < keep) return {};
  std::set<CheckpointId> last;
  for (std::uint32_t i = 0; i < keep; ++i) last.insert(line[i]->id);

  const auto newer_min = std::max(keep, newer_commits_min);
  std::vector<CheckpointId> retired;
  std::uint64_t newer = 0;  // commits that stay, newer than the one that is looked at
  for (auto decision = catalog.decisions.rbegin(); decision != catalog.decisions.rend(); ++decision) {
    if (!catalog.live(*decision)) continue;
    if (decision->keep_forever || last.contains(decision->id) || newer < newer_min) {
      ++newer;
    } else {
      retired.push_back(decision->id);
    }
  }
  std::reverse(retired.begin(), retired.end());
  return retired;
}

std::vector<CheckpointId> reached(const Decision& decision) { return {decision.id}; }

std::vector<CheckpointId> collectable(const Catalog& catalog, const std::vector<CheckpointId>& pinned) {
  std::set<CheckpointId> needed(pinned.begin(), pinned.end());
  for (const auto& decision : catalog.decisions) {
    const bool pin = std::find(pinned.begin(), pinned.end(), decision.id) != pinned.end();
    if (!pin && !catalog.live(decision)) continue;
    for (const auto& id : reached(decision)) needed.insert(id);
  }
  std::vector<CheckpointId> free;
  for (const auto& id : catalog.uncollected) {
    if (!needed.contains(id)) free.push_back(id);
  }
  return free;
}

}  // namespace vckpt
