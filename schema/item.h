// Non-tensor state: typed values with a scope. Nothing in it executes.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "ids.h"
#include "result.h"

namespace vckpt {

// A value tree. Maps keep the order they were given in; keys are unique.
struct Value {
  struct Bytes {
    std::string bytes;
    bool operator==(const Bytes&) const = default;
  };
  using List = std::vector<Value>;
  using Map = std::vector<std::pair<std::string, Value>>;
  std::variant<std::monostate, bool, std::int64_t, double, std::string, Bytes, List, Map> data;
  bool operator==(const Value&) const = default;  // NaN is unequal to itself; compare encoded bytes where that matters
};

constexpr std::size_t value_depth_max = 12;                        // levels, the root's included
constexpr std::uint64_t value_bytes_max = 128 << 20;               // texts, bytes and keys of one value
constexpr std::uint64_t value_nodes_max = std::uint64_t{1} << 22;  // values in one value

// invalid: a limit passed, or a key twice in one map.
Result<void> check_value(const Value& value);

enum class Scope : std::uint8_t {
  replicated = 1,  // equal on all ranks that give it, checked
  per_rank = 2,    // one value for each rank
  splittable = 3,  // a list; the ranks' parts follow one another in rank order
};

std::string_view to_string(Scope scope);

struct Item {
  std::string section;
  std::string name;  // fqn rules
  Scope scope = Scope::replicated;
  Value value;
  bool operator==(const Item&) const = default;
};

// An item as the manifest keeps it: with the rank that gave it (the lowest one for replicated).
struct StoredItem {
  Rank rank;
  Item item;
  bool operator==(const StoredItem&) const = default;
};

}  // namespace vckpt
