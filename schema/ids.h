// Strong identifiers: who, which checkpoint, which try. Values; ordered and hashable by their members.
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "result.h"

namespace vckpt {

// A number that does not mix with other numbers.
template <typename Tag, typename Number>
struct Id {
  Number value{};
  constexpr Id() = default;
  constexpr explicit Id(Number number) : value(number) {}
  auto operator<=>(const Id&) const = default;
};

using Rank = Id<struct RankTag, std::uint32_t>;
using Step = Id<struct StepTag, std::uint64_t>;                // a label; newest is never decided by it
using Epoch = Id<struct EpochTag, std::uint64_t>;              // one coordinator incarnation; from 1
using Attempt = Id<struct AttemptTag, std::uint64_t>;          // one try at a save; from 1, monotone within its epoch
using Session = Id<struct SessionTag, std::uint64_t>;          // one set of N workers, numbered by the coordinator
using Revision = Id<struct RevisionTag, std::uint32_t>;        // of an attempt's plan; 0 until reassignment raises it
using Round = Id<struct RoundTag, std::uint32_t>;              // of a load attempt's exchange
using Ordinal = Id<struct OrdinalTag, std::uint64_t>;          // of a save or load call within a session; from 1
using Incarnation = Id<struct IncarnationTag, std::uint64_t>;  // random, of one worker process
using Nonce = Id<struct NonceTag, std::uint64_t>;              // random

// 128 bits of XXH3 over encoded bytes: against accidents, not against attackers.
struct Digest {
  std::array<std::byte, 16> bytes{};
  auto operator<=>(const Digest&) const = default;
  std::string hex() const;  // 32 lower-case digits
};

// One checkpoint, or one try at one. Ordered by (epoch, attempt): the last one committed is the newest.
// On disk and on the command line: `e000003-a000012-s000600` (six digits at least, more when needed).
struct CheckpointId {
  Epoch epoch;
  Attempt attempt;
  Step step;
  auto operator<=>(const CheckpointId&) const = default;
  std::string name() const;
};

// Inverse of CheckpointId::name(); invalid unless name() of the result is the very same text.
Result<CheckpointId> parse_checkpoint_id(std::string_view name);

}  // namespace vckpt

template <typename Tag, typename Number>
struct std::hash<vckpt::Id<Tag, Number>> {
  std::size_t operator()(vckpt::Id<Tag, Number> id) const noexcept { return std::hash<Number>{}(id.value); }
};

template <>
struct std::hash<vckpt::Digest> {
  std::size_t operator()(const vckpt::Digest& digest) const noexcept;
};
