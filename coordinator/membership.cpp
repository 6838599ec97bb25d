#include "membership.h"

namespace vckpt::coordinator {

bool Membership::Forming::is_member(Rank rank, Incarnation incarnation) const {
  const auto found = members.find(rank);
  return found != members.end() && found->second.incarnation == incarnation;
}

std::string Membership::Forming::describe_missing() const {
  constexpr int named_max = 4;
  std::string text;
  int named = 0;
  for (std::uint32_t rank = 0; rank < world_size && named < named_max; ++rank) {
    if (members.contains(Rank{rank})) continue;
    text += (named++ == 0 ? "rank " : ", rank ") + std::to_string(rank);
  }
  const auto missing = world_size - members.size();
  return missing > named_max ? text + " and " + std::to_string(missing - named_max) + " more ranks" : text;
}

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
  const bool known_rank = forming.is_member(rank, member.incarnation);
  if (!forming.members.empty() && forming.changed + settings.deadline < now) {
    if (known_rank) {
      return unavailable(who + " waits for a session of " + std::to_string(forming.world_size) +
                         " ranks: " + forming.describe_missing() + " did not join within the deadline");
    }
    forming.members.clear();  // the others were refused
  }
  if (forming.members.empty()) forming.world_size = join.world_size;
  if (forming.world_size != join.world_size) {
    return invalid(who + " joins a world of " + size + " ranks, the session that is forming has " +
                   std::to_string(forming.world_size));
  }
  if (!known_rank) forming.changed = now;
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
