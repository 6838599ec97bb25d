#include "coordinator/planner/holder_sets.h"

#include <utility>

namespace vckpt {

std::uint32_t HolderSets::intern(Ranks ranks) {
  std::uint64_t hash = ranks.size();
  for (const auto rank : ranks) hash = (hash ^ rank) * 0x9E3779B97F4A7C15 + (hash >> 29);
  const auto [first, last] = by_hash_.equal_range(hash);
  for (auto candidate = first; candidate != last; ++candidate) {
    if (sets_[candidate->second] == ranks) return candidate->second;
  }
  const auto number = count();
  sets_.push_back(std::move(ranks));
  by_hash_.emplace(hash, number);
  return number;
}

}  // namespace vckpt
