#include "coordinator/planner/balance.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "coordinator/planner/flow.h"
#include "schema/result.h"

namespace vckpt {
namespace {

constexpr std::uint32_t no_set = 0xFFFFFFFF;

// Sets that share ranks, directly or through others.
class Components {
 public:
  explicit Components(std::size_t rank_count) : parent_(rank_count) {
    std::iota(parent_.begin(), parent_.end(), std::uint32_t{0});
  }
  std::uint32_t root(std::uint32_t rank) {
    while (parent_[rank] != rank) rank = parent_[rank] = parent_[parent_[rank]];
    return rank;
  }
  void join(const Ranks& ranks) {
    for (const auto rank : ranks) parent_[root(rank)] = root(ranks.front());
  }

 private:
  std::vector<std::uint32_t> parent_;
};

// Whether every set is inside or outside of every other. `members` ascend by size.
bool laminar(const std::vector<SharedBytes>& sets, const std::vector<std::uint32_t>& members,
             std::vector<std::uint32_t>& outermost) {
  for (const auto member : members) {
    std::map<std::uint32_t, std::size_t> inside;
    for (const auto rank : *sets[member].ranks) {
      if (outermost[rank] != no_set) ++inside[outermost[rank]];
    }
    for (const auto& [set, count] : inside) {
      if (count != sets[set].ranks->size()) return false;
    }
    for (const auto rank : *sets[member].ranks) outermost[rank] = member;
  }
  return true;
}

std::vector<__int128> levels_of(const Ranks& ranks, const std::vector<std::uint64_t>& loads) {
  std::vector<__int128> levels;
  levels.reserve(ranks.size());
  for (const auto rank : ranks) levels.push_back(loads[rank]);
  return levels;
}

// Ranks that are in the same sets.
struct RankClass {
  Ranks ranks;
  std::vector<std::uint32_t> members;  // positions of the sets among the component's
};

std::vector<RankClass> classes_of(const std::vector<SharedBytes>& sets, const std::vector<std::uint32_t>& members) {
  std::map<std::uint32_t, std::vector<std::uint32_t>> membership;
  for (std::uint32_t i = 0; i < members.size(); ++i) {
    for (const auto rank : *sets[members[i]].ranks) membership[rank].push_back(i);
  }
  std::map<std::vector<std::uint32_t>, Ranks> by_membership;
  for (auto& [rank, in] : membership) by_membership[std::move(in)].push_back(rank);
  std::vector<RankClass> classes;
  for (auto& [in, ranks] : by_membership) classes.push_back(RankClass{std::move(ranks), in});
  return classes;
}

std::uint64_t room(const RankClass& rank_class, const std::vector<std::uint64_t>& loads, std::uint64_t level) {
  std::uint64_t bytes = 0;
  for (const auto rank : rank_class.ranks) bytes += level > loads[rank] ? level - loads[rank] : 0;
  return bytes;
}

class CrossingSets {
 public:
  CrossingSets(const std::vector<SharedBytes>& sets, const std::vector<std::uint32_t>& members,
               std::vector<std::uint64_t>& loads, Shares& shares)
      : sets_(sets), members_(members), loads_(loads), shares_(shares), classes_(classes_of(sets, members)) {}

  void solve() {
    std::vector<bool> all(members_.size(), true);
    std::uint64_t level = raise_level(all);
    while (true) {
      FlowNetwork network(2 + members_.size() + classes_.size());
      const auto edges = connect(network, level);
      const std::uint64_t flow = network.maximize(0, 1);
      if (flow == total()) return lay(network, edges);
      std::vector<bool> violated(members_.size(), false);
      for (std::size_t i = 0; i < members_.size(); ++i) violated[i] = network.reachable(set_node(i));
      const std::uint64_t next = raise_level(violated);
      VCKPT_ASSERT(next > level);
      level = next;
    }
  }

 private:
  struct Edge {
    std::size_t rank_class;
    std::size_t member;
    std::size_t edge;
  };

  std::size_t set_node(std::size_t member) const { return 2 + member; }
  std::size_t class_node(std::size_t index) const { return 2 + members_.size() + index; }

  std::uint64_t total() const {
    std::uint64_t bytes = 0;
    for (const auto member : members_) bytes += sets_[member].bytes;
    return bytes;
  }

  // The level at which the chosen sets' bytes fit into the ranks that hold any of them.
  std::uint64_t raise_level(const std::vector<bool>& chosen) {
    Ranks ranks;
    for (const auto& rank_class : classes_) {
      const auto& in = rank_class.members;
      if (std::any_of(in.begin(), in.end(), [&](std::uint32_t member) { return chosen[member]; })) {
        ranks.insert(ranks.end(), rank_class.ranks.begin(), rank_class.ranks.end());
      }
    }
    std::uint64_t bytes = 0;
    for (std::size_t i = 0; i < members_.size(); ++i) bytes += chosen[i] ? sets_[members_[i]].bytes : 0;
    const auto raised = raise(levels_of(ranks, loads_), bytes);
    shares_.bound_bytes = std::max(shares_.bound_bytes, static_cast<double>(raised.surface));
    std::uint64_t level = 0;
    for (std::size_t i = 0; i < ranks.size(); ++i) {
      if (raised.added[i] != 0) level = std::max(level, loads_[ranks[i]] + raised.added[i]);
    }
    return level;
  }

  std::vector<Edge> connect(FlowNetwork& network, std::uint64_t level) const {
    std::vector<Edge> edges;
    for (std::size_t i = 0; i < members_.size(); ++i) network.add(0, set_node(i), sets_[members_[i]].bytes);
    for (std::size_t c = 0; c < classes_.size(); ++c) {
      for (const auto member : classes_[c].members) {
        edges.push_back(Edge{c, member, network.add(set_node(member), class_node(c), sets_[members_[member]].bytes)});
      }
      network.add(class_node(c), 1, room(classes_[c], loads_, level));
    }
    return edges;
  }

  // Inside a class the sets' bytes follow one another over its ranks.
  void lay(const FlowNetwork& network, const std::vector<Edge>& edges) {
    for (std::size_t e = 0; e < edges.size();) {
      const std::size_t c = edges[e].rank_class;
      const Ranks& ranks = classes_[c].ranks;
      std::size_t last = e;
      std::uint64_t bytes = 0;
      for (; last < edges.size() && edges[last].rank_class == c; ++last) bytes += network.flow(edges[last].edge);
      const auto raised = raise(levels_of(ranks, loads_), bytes);
      auto left = raised.added;
      std::size_t at = 0;
      for (; e < last; ++e) {
        const std::uint32_t set = members_[edges[e].member];
        const Ranks& set_ranks = *sets_[set].ranks;
        for (std::uint64_t rest = network.flow(edges[e].edge); rest != 0;) {
          while (left[at] == 0) ++at;
          const std::uint64_t part = std::min(rest, left[at]);
          const auto place = std::lower_bound(set_ranks.begin(), set_ranks.end(), ranks[at]) - set_ranks.begin();
          shares_.quotas[set][static_cast<std::size_t>(place)] += part;
          left[at] -= part;
          rest -= part;
        }
      }
      for (std::size_t i = 0; i < ranks.size(); ++i) loads_[ranks[i]] += raised.added[i];
    }
  }

  const std::vector<SharedBytes>& sets_;
  const std::vector<std::uint32_t>& members_;
  std::vector<std::uint64_t>& loads_;
  Shares& shares_;
  std::vector<RankClass> classes_;
};

}  // namespace

Raised raise(const std::vector<__int128>& levels, std::uint64_t bytes) {
  Raised raised;
  raised.added.assign(levels.size(), 0);
  VCKPT_ASSERT(!levels.empty());
  std::vector<std::size_t> order(levels.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return levels[a] < levels[b]; });
  // The lowest `count` stand below the surface: the sum of what they lack to the next one is less than `bytes`.
  __int128 sum = 0;
  std::size_t count = 0;
  while (count < order.size()) {
    const __int128 next = levels[order[count]];
    if (count != 0 && next * static_cast<__int128>(count) - sum >= static_cast<__int128>(bytes)) break;
    sum += next;
    ++count;
  }
  const __int128 volume = sum + static_cast<__int128>(bytes);
  const auto ranks = static_cast<__int128>(count);
  __int128 floor = volume / ranks;
  if (floor * ranks > volume) --floor;
  const auto rest = static_cast<std::size_t>(volume - floor * ranks);
  for (std::size_t i = 0; i < count; ++i) {
    raised.added[order[i]] = static_cast<std::uint64_t>(floor - levels[order[i]]) + (i < rest ? 1 : 0);
  }
  raised.surface = static_cast<long double>(volume) / static_cast<long double>(ranks);
  return raised;
}

Shares share(const std::vector<std::uint64_t>& exclusive_bytes, const std::vector<SharedBytes>& sets) {
  Shares shares;
  shares.quotas.resize(sets.size());
  std::vector<std::uint64_t> loads = exclusive_bytes;
  for (const auto load : loads) shares.bound_bytes = std::max(shares.bound_bytes, static_cast<double>(load));
  Components components(loads.size());
  for (std::size_t i = 0; i < sets.size(); ++i) {
    components.join(*sets[i].ranks);
    shares.quotas[i].assign(sets[i].ranks->size(), 0);
  }
  shares.order.resize(sets.size());
  std::iota(shares.order.begin(), shares.order.end(), std::uint32_t{0});
  std::stable_sort(shares.order.begin(), shares.order.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return sets[a].ranks->size() < sets[b].ranks->size(); });
  std::map<std::uint32_t, std::vector<std::uint32_t>> by_component;
  for (const auto set : shares.order) by_component[components.root(sets[set].ranks->front())].push_back(set);
  std::vector<std::uint32_t> outermost(loads.size(), no_set);
  for (const auto& [root, members] : by_component) {
    if (!laminar(sets, members, outermost)) {
      CrossingSets(sets, members, loads, shares).solve();
      continue;
    }
    for (const auto set : members) {
      if (sets[set].bytes == 0) continue;
      const auto raised = raise(levels_of(*sets[set].ranks, loads), sets[set].bytes);
      shares.quotas[set] = raised.added;
      for (std::size_t i = 0; i < raised.added.size(); ++i) loads[(*sets[set].ranks)[i]] += raised.added[i];
      shares.bound_bytes = std::max(shares.bound_bytes, static_cast<double>(raised.surface));
    }
  }
  return shares;
}

Ledger::Ledger(std::vector<std::uint64_t> exclusive_bytes)
    : loads_(std::move(exclusive_bytes)), ideal_(loads_.begin(), loads_.end()) {}

std::vector<std::uint64_t> Ledger::aim(const Ranks& ranks, const std::vector<std::uint64_t>& quotas) const {
  std::vector<__int128> levels;
  std::vector<std::size_t> takers;
  std::uint64_t bytes = 0;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    if (quotas[i] == 0) continue;
    takers.push_back(i);
    bytes += quotas[i];
    levels.push_back(static_cast<__int128>(loads_[ranks[i]]) - ideal_[ranks[i]] - static_cast<__int128>(quotas[i]));
  }
  std::vector<std::uint64_t> aimed(ranks.size(), 0);
  if (takers.empty()) return aimed;
  const auto raised = raise(levels, bytes);
  for (std::size_t i = 0; i < takers.size(); ++i) aimed[takers[i]] = raised.added[i];
  return aimed;
}

void Ledger::enter(const Ranks& ranks, const std::vector<std::uint64_t>& quotas,
                   const std::vector<std::uint64_t>& taken) {
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    ideal_[ranks[i]] += quotas[i];
    loads_[ranks[i]] += taken[i];
  }
}

}  // namespace vckpt
