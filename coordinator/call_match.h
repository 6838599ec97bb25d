// One call (a save or a load) as its ranks make it: the same call on all of them, or an error that names ranks.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "coordinator/layout_table.h"
#include "coordinator/roster.h"
#include "schema/message.h"

namespace vckpt::coordinator {

// What differs between two ranks' calls: nothing, or `step 6` and `step 7`.
struct Difference {
  std::string first;
  std::string second;
};
std::optional<Difference> difference(const SaveCall& first, const SaveCall& second);
std::optional<Difference> difference(const LoadCall& first, const LoadCall& second);

// invalid: a section name that is wrong, twice, or out of order.
Result<void> check_offers(const std::vector<SectionOffer>& sections);

// The offers of all ranks; entries stay empty until a rank has called.
struct Offers {
  std::vector<std::optional<std::vector<SectionOffer>>> by_rank;
  std::map<Digest, Rank> asked;  // bodies that were asked for, and whom

  // Bodies that nobody has given yet, to be asked of `rank`: those it offers and that no other present rank was asked
  // for.
  std::vector<Digest> to_ask(Rank rank, const BodyTable& bodies, const Roster& roster);
  bool bodies_known(const BodyTable& bodies) const;
  PlacementKey key() const;
  // All bodies must be known.
  std::vector<SectionPlacement> placements(BodyTable& bodies) const;
};

// Which items each rank sends with its receipt: `replicated` ones the lowest rank that has them, others every one.
// invalid, naming the item and ranks: replicated values that differ, one item with two scopes, one twice.
using AskedItems = std::vector<std::vector<ItemOffer>>;
Result<AskedItems> match_items(const Roster& roster, const std::vector<const std::vector<ItemOffer>*>& offers);

template <typename Call>
class CallMatch {
 public:
  explicit CallMatch(std::uint32_t world_size) : calls_(world_size) { offers_.by_rank.resize(world_size); }

  // True: this rank's first. A repetition is fine. invalid, naming ranks, when it does not match the others'.
  Result<bool> add(const Roster& roster, Rank rank, const Call& call) {
    const auto what = "call " + std::to_string(call.ordinal.value);
    if (count_ > 0) {
      if (const auto differs = difference(*calls_[first_.value], call)) {
        return invalid(what + " differs between ranks: " + roster.describe(first_) + " has " + differs->first + ", " +
                       roster.describe(rank) + " has " + differs->second);
      }
    }
    if (calls_[rank.value]) return false;
    if (auto checked = check_offers(call.sections); !checked) {
      return checked.error().with_context(what + ": " + roster.describe(rank));
    }
    if (count_ == 0) first_ = rank;
    ++count_;
    calls_[rank.value] = call;
    offers_.by_rank[rank.value] = call.sections;
    return true;
  }

  bool any() const { return count_ > 0; }
  bool complete() const { return count_ == calls_.size(); }
  bool has(Rank rank) const { return calls_[rank.value].has_value(); }
  const Call& of(Rank rank) const { return *calls_[rank.value]; }
  const Call& first() const { return *calls_[first_.value]; }
  Offers& offers() { return offers_; }

  // What the call still waits for when its deadline has passed; nothing when all has come.
  std::optional<Error> awaited(const Roster& roster, const BodyTable& bodies) const {
    std::vector<Rank> missing;
    for (std::uint32_t rank = 0; rank < calls_.size(); ++rank) {
      if (!calls_[rank]) missing.push_back(Rank{rank});
    }
    if (!missing.empty()) return unavailable("not called by " + roster.describe(missing) + " within the deadline");
    if (!offers_.bodies_known(bodies)) return unavailable("the layouts that were asked for did not come");
    return std::nullopt;
  }

  std::vector<const std::vector<ItemOffer>*> items() const {
    std::vector<const std::vector<ItemOffer>*> all;
    for (const auto& call : calls_) all.push_back(&call->items);
    return all;
  }

 private:
  std::vector<std::optional<Call>> calls_;  // by rank
  Offers offers_;
  Rank first_;
  std::size_t count_ = 0;
};

}  // namespace vckpt::coordinator
