// What the state machine of one call may touch while it handles one event, and the settings of a coordinator.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>

#include "coordinator/layout_table.h"
#include "coordinator/outbox.h"
#include "coordinator/roster.h"
#include "runtime/time_point.h"

namespace vckpt::coordinator {

struct Settings {
  std::string root;         // for messages
  std::string host;         // for messages
  std::uint32_t ranks = 0;  // every session must have so many; 0: any number
  Duration deadline = std::chrono::seconds(120);
  Duration grace = std::chrono::seconds(30);  // after StopAsked
  Nonce nonce;                                // of this incarnation; segment names and decisions carry it
  std::int64_t started_unix_s = 0;            // for people; decides nothing
};

// Storage that does not answer for so long ends the coordinator: its successor finds out what stands.
inline Duration storage_deadline(const Settings& settings) {
  return std::max<Duration>(settings.deadline, std::chrono::seconds(30));
}

struct CallContext {
  const Settings& settings;
  TimePoint now;
  std::int64_t now_unix_s = 0;
  Outbox& out;
  Roster& roster;
  BodyTable& bodies;
  PlanCache& plans;
  std::uint64_t& attempts;            // the last number given away in this epoch
  std::optional<CheckpointId>& line;  // what this session loaded or committed last: the next commit's parent
  std::optional<Error>& fatal;        // set: the coordinator cannot go on
};

// When a call may go on: calls start and are decided in the order of their ordinals.
struct Turn {
  bool may_start = false;
  bool may_decide = false;
};

}  // namespace vckpt::coordinator
