// Who takes how much of what several ranks hold, so that the most loaded rank has the least possible: the bound
// L* = max over rank sets R of bytes(held only inside R) / |R|. Laminar families of sets are filled innermost first,
// which is exact; crossing ones are solved as a min-max flow from sets to classes of ranks with equal membership,
// raising the level from violated cut to violated cut (discrete Newton).
#pragma once

#include <cstdint>
#include <vector>

#include "coordinator/planner/holder_sets.h"

namespace vckpt {

struct SharedBytes {
  const Ranks* ranks = nullptr;
  std::uint64_t bytes = 0;
};

struct Shares {
  // Indices into the sets, in the order in which they are to be laid out: every set after those inside it.
  std::vector<std::uint32_t> order;
  // Of each set, parallel to its ranks: bytes. They add up to the set's.
  std::vector<std::vector<std::uint64_t>> quotas;
  double bound_bytes = 0;
};

// `exclusive_bytes` of each rank count first. The sets are distinct.
Shares share(const std::vector<std::uint64_t>& exclusive_bytes, const std::vector<SharedBytes>& sets);

// Water-filling: adds `bytes` to the lowest of `levels` until they stand equal; how much goes to each. Levels may be
// negative. `surface` is the common level reached, exactly.
struct Raised {
  std::vector<std::uint64_t> added;
  long double surface = 0;
};
Raised raise(const std::vector<__int128>& levels, std::uint64_t bytes);

// Lays sets out one after another by their shares, so that what rounding gave or took in earlier sets is made up for in
// later ones. Ranks without a share still get nothing.
class Ledger {
 public:
  explicit Ledger(std::vector<std::uint64_t> exclusive_bytes);
  // What to aim at for a set, given its shares: parallel to its ranks, with the same sum.
  std::vector<std::uint64_t> aim(const Ranks& ranks, const std::vector<std::uint64_t>& quotas) const;
  // What its ranks got.
  void enter(const Ranks& ranks, const std::vector<std::uint64_t>& quotas, const std::vector<std::uint64_t>& taken);
  const std::vector<std::uint64_t>& loads() const { return loads_; }

 private:
  std::vector<std::uint64_t> loads_;
  std::vector<__int128> ideal_;
};

}  // namespace vckpt
