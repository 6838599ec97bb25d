#include "layout_table.h"

#include <algorithm>

namespace vckpt::coordinator {

std::shared_ptr<const LayoutBody> BodyTable::find(const Digest& digest) {
  const auto found = bodies_.find(digest);
  if (found == bodies_.end()) return nullptr;
  found->second.used = ++uses_;
  return found->second.body;
}

void BodyTable::add(const Digest& digest, std::shared_ptr<const LayoutBody> body) {
  if (!bodies_.contains(digest) && bodies_.size() >= bodies_max) {
    bodies_.erase(std::min_element(bodies_.begin(), bodies_.end(),
                                   [](const auto& a, const auto& b) { return a.second.used < b.second.used; }));
  }
  bodies_[digest] = {std::move(body), ++uses_};
}

const EncodedPlan* PlanCache::find(const PlacementKey& key) {
  const auto found = std::find_if(plans_.begin(), plans_.end(), [&](const auto& plan) { return plan.first == key; });
  if (found == plans_.end()) return nullptr;
  std::rotate(plans_.begin(), found, found + 1);
  return &plans_.front().second;
}

void PlanCache::add(PlacementKey key, EncodedPlan plan) {
  plan.bytes.reset();  // they are on storage
  std::erase_if(plans_, [&](const auto& known) { return known.first == key; });
  plans_.insert(plans_.begin(), {std::move(key), std::move(plan)});
  if (plans_.size() > cached_plans_max) plans_.pop_back();
}

}  // namespace vckpt::coordinator
