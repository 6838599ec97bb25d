// Sessions that are forming: joins are collected by session name until all ranks of a world are there. Joins are
// repeated every second, so whoever falls silent while a session forms is forgotten soon.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "coordinator/call_context.h"
#include "coordinator/roster.h"

namespace vckpt::coordinator {

constexpr std::size_t forming_sessions_max = 16;
constexpr std::uint32_t world_size_max = 1 << 20;

class Membership {
 public:
  // The complete roster (without a session number yet), or nothing while ranks are missing. invalid: another world size
  // than the session that is forming, or than the coordinator was told; a rank that is out of range. exhausted: too
  // many sessions are forming.
  Result<std::optional<Roster>> on_join(const Settings& settings, Rank rank, const Member& member, TimePoint now);
  void forget_silent(const Settings& settings, TimePoint now);
  std::size_t forming() const { return forming_.size(); }

 private:
  struct Forming {
    std::uint32_t world_size = 0;
    std::map<Rank, Member> members;
    TimePoint changed;  // a new rank came
    bool is_member(Rank rank, Incarnation incarnation) const;
    std::string describe_missing() const;
  };
  std::map<std::string, Forming> forming_;  // by name
};

}  // namespace vckpt::coordinator
