#include "membership.h"

namespace vckpt::coordinator {

Result<std::optional<Roster>> Membership::on_join(const Settings& settings, Rank rank, const Member& member,
                                                  TimePoint now) {
  const auto& join = member.join;
  const auto who = "rank " + std::to_string(rank.value) + " (" + join.host + ")";
  const auto size = std::to_string(join.world_size);
  if (settings.ranks != 0 && join.world_size != settings.ranks) {
    return invalid(who + " joins a world of " + size + " ranks, this coordinator serves " +
                   std::to_string(settings.ranks));
  }
  if (join.world_size > world_size_max) return invalid(who + " joins a world of " + size + " ranks, that is too many");
  if (rank.value >= join.world_size) return invalid(who + " is out of range: the world has " + size + " ranks");
  forget_silent(settings, now);
  const auto known = forming_.find(join.session_name);
  if (known == forming_.end() && forming_.size() >= forming_sessions_max) {
    return exhausted(who + ": too many sessions are forming");
  }
  auto& forming = known == forming_.end() ? forming_[join.session_name] : known->second;
  if (forming.members.empty()) forming.world_size = join.world_size;
  if (forming.world_size != join.world_size) {
    return invalid(who + " joins a world of " + size + " ranks, the session that is forming has " +
                   std::to_string(forming.world_size));
  }
  forming.members[rank] = member;
  if (forming.members.size() < forming.world_size) return std::optional<Roster>();
  Roster roster;
  roster.name = join.session_name;
  for (auto& [key, joined] : forming.members) roster.members.push_back(std::move(joined));
  forming_.erase(roster.name);
  return std::optional<Roster>(std::move(roster));
}

void Membership::forget_silent(const Settings& settings, TimePoint now) {
  const auto silence = std::min<Duration>(settings.deadline, std::chrono::seconds(5));
  for (auto& [name, forming] : forming_) {
    std::erase_if(forming.members, [&](const auto& member) { return member.second.heard + silence < now; });
  }
  std::erase_if(forming_, [](const auto& forming) { return forming.second.members.empty(); });
}

}  // namespace vckpt::coordinator
