#include "roster.h"

#include <algorithm>

namespace vckpt::coordinator {

std::string Roster::describe(Rank rank) const {
  auto text = "rank " + std::to_string(rank.value);
  if (rank.value < members.size() && !members[rank.value].join.host.empty()) {
    text += " (" + members[rank.value].join.host + ")";
  }
  return text;
}

std::string Roster::describe(const std::vector<Rank>& ranks) const {
  constexpr std::size_t named_max = 4;
  std::string text;
  for (std::size_t index = 0; index < std::min(ranks.size(), named_max); ++index) {
    text += (index == 0 ? "" : ", ") + describe(ranks[index]);
  }
  if (ranks.size() > named_max) text += " and " + std::to_string(ranks.size() - named_max) + " more ranks";
  return text;
}

std::string Roster::describe_absence(Rank rank) const {
  const auto& member = members[rank.value];
  if (member.left) return describe(rank) + " has left";
  return describe(rank) + " is lost, last heard of in phase " + std::string(to_string(member.progress.phase));
}

std::string Roster::describe_stall(Rank rank, TimePoint now) const {
  const auto& member = members[rank.value];
  const auto silent = std::chrono::duration_cast<std::chrono::seconds>(now - member.moved).count();
  return describe(rank) + " has not moved for " + std::to_string(silent) + " s in phase " +
         std::string(to_string(member.progress.phase)) + " at " + std::to_string(member.progress.bytes) + " bytes";
}

bool Roster::anybody_present() const {
  return std::any_of(members.begin(), members.end(), [](const Member& member) { return member.present(); });
}

bool Roster::everybody_present() const {
  return std::all_of(members.begin(), members.end(), [](const Member& member) { return member.present(); });
}

}  // namespace vckpt::coordinator
