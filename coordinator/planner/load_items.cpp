#include "coordinator/planner/load_items.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "coordinator/planner/wants.h"
#include "schema/box.h"

namespace vckpt {
namespace {

class ItemPlanner {
 public:
  ItemPlanner(const Manifest& manifest, const LoadRequest& request)
      : manifest_(manifest), options_(request.options), world_size_(static_cast<std::uint32_t>(request.items.size())) {
    for (const auto& item : manifest.items) stored_[ItemKey{item.item.section, item.item.name}].push_back(&item);
  }

  // Nothing: there is no such item for this rank, or it is dropped.
  Result<std::optional<Item>> find(const ItemOffer& wanted, std::uint32_t rank) {
    const auto found = stored_.find(ItemKey{wanted.section, stored_name(options_, wanted.name)});
    if (found == stored_.end()) return miss(wanted, rank);
    const auto& given = found->second;
    Item item{wanted.section, wanted.name, given.front()->item.scope, {}};
    if (item.scope == Scope::splittable) {
      VCKPT_TRY(item.value, part_of(found->first, given, rank));
      return std::optional(std::move(item));
    }
    if (item.scope == Scope::replicated) {
      item.value = given.front()->item.value;
      return std::optional(std::move(item));
    }
    if (manifest_.world_size == world_size_) {
      const auto own = std::find_if(given.begin(), given.end(), [&](const auto* i) { return i->rank.value == rank; });
      if (own == given.end()) return miss(wanted, rank);
      item.value = (*own)->item.value;
      return std::optional(std::move(item));
    }
    if (options_.per_rank == PerRank::drop) return std::optional<Item>();
    if (options_.per_rank == PerRank::exact) {
      return invalid(item_text(wanted) + " has a value for each of " + std::to_string(manifest_.world_size) +
                     " ranks and is wanted on " + std::to_string(world_size_) + " ranks");
    }
    Value::Map values;
    for (const auto* one : given) values.emplace_back(std::to_string(one->rank.value), one->item.value);
    item.value.data = std::move(values);
    return std::optional(std::move(item));
  }

  std::vector<std::string> missing() const { return {missing_.begin(), missing_.end()}; }

 private:
  static std::string item_text(const ItemOffer& wanted) {
    return "section '" + wanted.section + "': item '" + wanted.name + "'";
  }

  Result<std::optional<Item>> miss(const ItemOffer& wanted, std::uint32_t rank) {
    if (options_.missing == Missing::error) {
      return not_found(item_text(wanted) + " is wanted by rank " + std::to_string(rank) + " and not in the checkpoint");
    }
    missing_.insert(wanted.section + ":" + wanted.name);
    return std::optional<Item>();
  }

  Result<Value> part_of(const ItemKey& key, const std::vector<const StoredItem*>& given, std::uint32_t rank) {
    auto known = joined_.find(key);
    if (known == joined_.end()) {
      Value::List joined;
      for (const auto* one : given) {
        const auto* list = std::get_if<Value::List>(&one->item.value.data);
        if (list == nullptr) {
          return corrupt("section '" + key.section + "': splittable item '" + key.name + "' of rank " +
                         std::to_string(one->rank.value) + " is not a list");
        }
        joined.insert(joined.end(), list->begin(), list->end());
      }
      known = joined_.emplace(key, std::move(joined)).first;
    }
    const Box part = cut(whole({known->second.size()}), 0, world_size_, rank);
    const auto first = known->second.begin() + static_cast<std::ptrdiff_t>(part.offsets[0]);
    return Value{Value::List(first, first + static_cast<std::ptrdiff_t>(part.sizes[0]))};
  }

  const Manifest& manifest_;
  const LoadOptions& options_;
  std::uint32_t world_size_;
  std::map<ItemKey, std::vector<const StoredItem*>> stored_;
  std::map<ItemKey, Value::List> joined_;
  std::set<std::string> missing_;
};

}  // namespace

Result<PlannedItems> plan_items(const Manifest& manifest, const LoadRequest& request) {
  PlannedItems planned;
  planned.of_rank.resize(request.items.size());
  ItemPlanner planner(manifest, request);
  for (std::uint32_t rank = 0; rank < request.items.size(); ++rank) {
    for (const auto& wanted : request.items[rank]) {
      if (!asked_for(request.options, wanted.name)) continue;
      VCKPT_TRY(auto item, planner.find(wanted, rank));
      if (item) planned.of_rank[rank].push_back(std::move(*item));
    }
  }
  planned.missing = planner.missing();
  return planned;
}

}  // namespace vckpt
