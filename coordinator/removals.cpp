#include "removals.h"

#include <algorithm>

namespace vckpt::coordinator {

void Removals::begin(Outbox& out, const CheckpointId& id) {
  removals_.push_back({id, out.ticket(), 1, false});
  out.push(RemoveData{removals_.back().ticket, id});
}

void Removals::on_answer(Outbox& out, const DataRemoved& event) {
  const auto found = std::find_if(removals_.begin(), removals_.end(),
                                  [&](const Removal& removal) { return removal.ticket == event.ticket; });
  if (found == removals_.end()) return;
  if (!event.outcome && found->tries < removal_tries_max) {
    found->failed = true;
    return;
  }
  if (!event.outcome) out.log(found->id.name() + ": its data could not be removed: " + event.outcome.error().message);
  removals_.erase(found);
}

void Removals::tick(Outbox& out) {
  for (auto& removal : removals_) {
    if (!removal.failed) continue;
    removal.failed = false;
    ++removal.tries;
    out.push(RemoveData{removal.ticket, removal.id});
  }
}

}  // namespace vckpt::coordinator
