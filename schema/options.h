// What a caller may ask of a save or a load. Part of the public API. Options travel with the call and must be equal on
// all ranks.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "ids.h"

namespace vckpt {

enum class OverBudget : std::uint8_t { wait = 1, fail = 2 };

constexpr std::size_t meta_bytes_max = 1 << 20;

struct SaveOptions {
  OverBudget over_budget = OverBudget::wait;  // owned bytes above the staging budget: go in waves, or `exhausted`
  std::string meta;                           // JSON text kept with the checkpoint, at most meta_bytes_max bytes
  bool keep_forever = false;
  bool operator==(const SaveOptions&) const = default;
};

struct Newest {
  bool operator==(const Newest&) const = default;
};
inline constexpr Newest newest{};

// Which checkpoint: the last commit; the newest with a step, on the current line first; or exactly one.
using Selector = std::variant<Newest, Step, CheckpointId>;

enum class Missing : std::uint8_t { error = 1, keep = 2 };
enum class Unexpected : std::uint8_t { error = 1, ignore = 2 };
enum class PerRank : std::uint8_t { exact = 1, gather = 2, drop = 3 };
enum class Outside : std::uint8_t { zero = 1, keep = 2 };

struct Resize {
  std::string pattern;  // glob over fqns
  Outside outside = Outside::zero;
  bool operator==(const Resize&) const = default;
};

struct LoadOptions {
  Missing missing = Missing::error;           // wanted, not stored; judged within the sections asked for
  Unexpected unexpected = Unexpected::error;  // stored in a section asked for, not wanted
  bool cast = false;                          // dtypes may differ; values are rounded to nearest, ties to even
  std::vector<std::string> only;              // globs over fqns; empty: all
  std::vector<std::pair<std::string, std::string>> rename;  // wanted -> stored
  std::vector<Resize> resize;                               // global shapes may differ: the common box is loaded
  PerRank per_rank = PerRank::exact;                        // per_rank items on another world size
  bool operator==(const LoadOptions&) const = default;
};

}  // namespace vckpt
