#include "call_match.h"

#include <algorithm>
#include <set>

namespace vckpt::coordinator {
namespace {

std::string describe(const Selector& selector) {
  if (const auto* step = std::get_if<Step>(&selector)) return "step " + std::to_string(step->value);
  if (const auto* id = std::get_if<CheckpointId>(&selector)) return id->name();
  return "the newest";
}

}  // namespace

std::optional<Difference> difference(const SaveCall& first, const SaveCall& second) {
  if (first.step != second.step) {
    return Difference{"step " + std::to_string(first.step.value), "step " + std::to_string(second.step.value)};
  }
  if (first.options != second.options) return Difference{"some options of the save", "others"};
  return std::nullopt;
}

std::optional<Difference> difference(const LoadCall& first, const LoadCall& second) {
  if (first.selector != second.selector) return Difference{describe(first.selector), describe(second.selector)};
  if (first.options != second.options) return Difference{"some options of the load", "others"};
  return std::nullopt;
}

Result<void> check_offers(const std::vector<SectionOffer>& sections) {
  for (std::size_t index = 0; index < sections.size(); ++index) {
    VCKPT_TRY_VOID(check_section_name(sections[index].name));
    if (index > 0 && !(sections[index - 1].name < sections[index].name)) {
      return invalid("section '" + sections[index].name + "' is offered twice or out of order");
    }
  }
  return {};
}

std::vector<Digest> Offers::to_ask(Rank rank, const BodyTable& bodies, const Roster& roster) {
  std::vector<Digest> unknown;
  for (const auto& section : *by_rank[rank.value]) {
    if (bodies.knows(section.body)) continue;
    const auto [holder, added] = asked.try_emplace(section.body, rank);
    if (!roster.members[holder->second.value].present()) holder->second = rank;
    if (holder->second == rank) unknown.push_back(section.body);
  }
  std::sort(unknown.begin(), unknown.end());
  unknown.erase(std::unique(unknown.begin(), unknown.end()), unknown.end());
  return unknown;
}

bool Offers::bodies_known(const BodyTable& bodies) const {
  for (const auto& sections : by_rank) {
    if (!sections) return false;
    for (const auto& section : *sections) {
      if (!bodies.knows(section.body)) return false;
    }
  }
  return true;
}

PlacementKey Offers::key() const {
  std::map<std::string, std::vector<PlacementKey::Held>> sections;
  for (std::size_t rank = 0; rank < by_rank.size(); ++rank) {
    for (const auto& offer : *by_rank[rank]) {
      auto& ranks = sections[offer.name];
      ranks.resize(by_rank.size());
      ranks[rank] = {offer.body, offer.coordinates};
    }
  }
  return {{sections.begin(), sections.end()}};
}

std::vector<SectionPlacement> Offers::placements(BodyTable& bodies) const {
  const auto nothing = std::make_shared<const LayoutBody>();
  std::map<std::string, Placement> sections;
  for (std::size_t rank = 0; rank < by_rank.size(); ++rank) {
    for (const auto& offer : *by_rank[rank]) {
      auto& layouts = sections[offer.name].layouts;
      layouts.resize(by_rank.size(), Layout{nothing, {}});
      layouts[rank] = {bodies.find(offer.body), offer.coordinates};
    }
  }
  std::vector<SectionPlacement> placements;
  for (auto& [name, placement] : sections) placements.push_back({name, std::move(placement)});
  return placements;
}

namespace {

struct ItemHolders {
  Scope scope = Scope::replicated;
  Digest digest;  // of the lowest rank
  std::vector<Rank> equal;
  std::vector<Rank> different;
};

Result<void> add_holder(std::map<ItemKey, ItemHolders>& items, const Roster& roster, Rank rank,
                        const ItemOffer& offer) {
  const auto named = [&] { return "item '" + offer.section + ":" + offer.name + "'"; };
  VCKPT_TRY_VOID(check_section_name(offer.section));
  VCKPT_TRY_VOID(check_fqn(offer.name));
  auto& holders = items[{offer.section, offer.name}];
  if (holders.equal.empty()) {
    holders = {offer.scope, offer.digest, {rank}, {}};
    return {};
  }
  if (holders.equal.back() == rank || (!holders.different.empty() && holders.different.back() == rank)) {
    return invalid(named() + " is offered twice by " + roster.describe(rank));
  }
  if (holders.scope != offer.scope) {
    return invalid(named() + " is " + std::string(to_string(holders.scope)) + " on " +
                   roster.describe(holders.equal.front()) + " and " + std::string(to_string(offer.scope)) + " on " +
                   roster.describe(rank));
  }
  const bool same = offer.scope != Scope::replicated || offer.digest == holders.digest;
  (same ? holders.equal : holders.different).push_back(rank);
  return {};
}

}  // namespace

Result<AskedItems> match_items(const Roster& roster, const std::vector<const std::vector<ItemOffer>*>& offers) {
  std::map<ItemKey, ItemHolders> items;
  for (std::uint32_t rank = 0; rank < offers.size(); ++rank) {
    for (const auto& offer : *offers[rank]) VCKPT_TRY_VOID(add_holder(items, roster, Rank{rank}, offer));
  }
  AskedItems asked(offers.size());
  for (const auto& [key, holders] : items) {
    if (!holders.different.empty()) {
      return invalid("replicated item '" + key.section + ":" + key.name + "' differs between ranks: " +
                     roster.describe(holders.equal) + " against " + roster.describe(holders.different));
    }
  }
  for (std::uint32_t rank = 0; rank < offers.size(); ++rank) {
    for (const auto& offer : *offers[rank]) {
      const auto& holders = items[{offer.section, offer.name}];
      if (offer.scope != Scope::replicated || holders.equal.front() == Rank{rank}) asked[rank].push_back(offer);
    }
  }
  return asked;
}

}  // namespace vckpt::coordinator
