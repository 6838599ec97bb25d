// The workers of one session and how each of them is doing.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/time_point.h"
#include "schema/message.h"

namespace vckpt::coordinator {

struct Member {
  std::string peer;  // where the last message came from
  Incarnation incarnation;
  Join join;
  Progress progress;
  TimePoint heard;
  TimePoint moved;    // last change of (phase, bytes)
  bool lost = false;  // silent for the deadline; a message brings it back
  bool left = false;  // said Goodbye

  bool present() const { return !lost && !left; }
};

struct Roster {
  Session session;
  std::string name;
  std::vector<Member> members;  // by rank

  std::uint32_t world_size() const { return static_cast<std::uint32_t>(members.size()); }
  std::string describe(Rank rank) const;                       // `rank 2 (node-7)`
  std::string describe(const std::vector<Rank>& ranks) const;  // the first few, and how many more
  std::string describe_absence(Rank rank) const;  // `rank 2 (node-7) is lost, last heard of in phase write`
  std::string describe_stall(Rank rank, TimePoint now) const;
  bool anybody_present() const;
  bool everybody_present() const;
};

// The rank without a receipt that has stood still for longest, if that is longer than `deadline`. Before `since` there
// was nothing to do.
template <typename Receipt>
std::optional<Rank> stalled_rank(const Roster& roster, const std::vector<std::optional<Receipt>>& receipts,
                                 TimePoint since, Duration deadline, TimePoint now) {
  std::optional<Rank> stalled;
  auto oldest = now - deadline;
  for (std::uint32_t rank = 0; rank < receipts.size(); ++rank) {
    const auto moved = std::max(roster.members[rank].moved, since);
    if (receipts[rank] || moved >= oldest) continue;
    oldest = moved;
    stalled = Rank{rank};
  }
  return stalled;
}

}  // namespace vckpt::coordinator
