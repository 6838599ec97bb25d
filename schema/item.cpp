#include "schema/item.h"

#include <unordered_set>

namespace vckpt {
namespace {

// Adds up what a value holds.
class ValueCheck {
 public:
  Result<void> add(const Value& value, std::size_t depth) {
    if (depth > value_depth_max) return invalid("nested deeper than " + std::to_string(value_depth_max) + " levels");
    if (++nodes_ > value_nodes_max) return invalid("more than " + std::to_string(value_nodes_max) + " values");
    if (const auto* text = std::get_if<std::string>(&value.data)) return add_bytes(text->size());
    if (const auto* bytes = std::get_if<Value::Bytes>(&value.data)) return add_bytes(bytes->bytes.size());
    if (const auto* list = std::get_if<Value::List>(&value.data)) {
      for (const auto& element : *list) VCKPT_TRY_VOID(add(element, depth + 1));
    }
    if (const auto* map = std::get_if<Value::Map>(&value.data)) return add_map(*map, depth);
    return {};
  }

 private:
  Result<void> add_map(const Value::Map& map, std::size_t depth) {
    std::unordered_set<std::string_view> seen;
    for (const auto& [key, element] : map) {
      if (!seen.insert(key).second) return invalid("the key '" + key.substr(0, 100) + "' stands in a map twice");
      VCKPT_TRY_VOID(add_bytes(key.size()));
      VCKPT_TRY_VOID(add(element, depth + 1));
    }
    return {};
  }
  Result<void> add_bytes(std::size_t count) {
    bytes_ += count;
    if (bytes_ > value_bytes_max) return invalid("more than " + std::to_string(value_bytes_max) + " bytes");
    return {};
  }

  std::uint64_t nodes_ = 0;
  std::uint64_t bytes_ = 0;
};

}  // namespace

Result<void> check_value(const Value& value) { return ValueCheck().add(value, 1); }

std::string_view to_string(Scope scope) {
  switch (scope) {
    case Scope::replicated: return "replicated";
    case Scope::per_rank: return "per_rank";
    case Scope::splittable: return "splittable";
  }
  return "unknown";
}

}  // namespace vckpt
