// Sets of ranks that hold (or want) the same bytes, each kept once and named by a number.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

namespace vckpt {

using Ranks = std::vector<std::uint32_t>;  // ascending, each once

class HolderSets {
 public:
  // The number of this set; equal sets have equal numbers. Numbers count from 0 in order of first use.
  std::uint32_t intern(Ranks ranks);
  const Ranks& ranks(std::uint32_t set) const { return sets_[set]; }
  std::uint32_t count() const { return static_cast<std::uint32_t>(sets_.size()); }

 private:
  std::vector<Ranks> sets_;
  std::unordered_multimap<std::uint64_t, std::uint32_t> by_hash_;
};

}  // namespace vckpt
