// Layout bodies by digest, and the plans of placements seen before: what makes the steady state cheap. Both bounded,
// least recently used first out.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "coordinator/event.h"
#include "schema/layout.h"

namespace vckpt::coordinator {

constexpr std::size_t bodies_max = 65536;
constexpr std::size_t cached_plans_max = 8;

class BodyTable {
 public:
  std::shared_ptr<const LayoutBody> find(const Digest& digest);
  bool knows(const Digest& digest) const { return bodies_.contains(digest); }
  void add(const Digest& digest, std::shared_ptr<const LayoutBody> body);
  std::size_t size() const { return bodies_.size(); }

 private:
  struct Known {
    std::shared_ptr<const LayoutBody> body;
    std::uint64_t used = 0;
  };
  std::map<Digest, Known> bodies_;
  std::uint64_t uses_ = 0;
};

// What every rank holds, by name: equal keys are equal placements.
struct PlacementKey {
  struct Held {
    Digest body;
    Coordinates coordinates;
    bool operator==(const Held&) const = default;
  };
  std::vector<std::pair<std::string, std::vector<Held>>> sections;  // one Held per rank
  bool operator==(const PlacementKey&) const = default;
};

// Only plans that are durable.
class PlanCache {
 public:
  const EncodedPlan* find(const PlacementKey& key);
  void add(PlacementKey key, EncodedPlan plan);
  std::size_t size() const { return plans_.size(); }

 private:
  std::vector<std::pair<PlacementKey, EncodedPlan>> plans_;  // last used first
};

}  // namespace vckpt::coordinator
