// Asks the coordinator that an epoch record names whether it lives and has live workers, before the root is taken over.
#pragma once

#include <functional>
#include <memory>

#include "runtime/channel.h"
#include "runtime/clock.h"
#include "schema/manifest.h"

namespace vckpt {

constexpr std::chrono::seconds predecessor_wait{2};  // no answer for so long: it is dead

// Threading: made, used and destroyed on the actor of its seams, which outlive it.
class PredecessorActor {
 public:
  // `channel` is a worker's side, connected to the record's endpoint.
  PredecessorActor(Clock& clock, Channel& channel, RunRecord run, EpochRecord epoch, Incarnation incarnation);
  ~PredecessorActor();
  PredecessorActor(const PredecessorActor&) = delete;
  PredecessorActor& operator=(const PredecessorActor&) = delete;

  // Completes once: ok when nobody of that epoch answers, or has no workers; unavailable with its own words otherwise.
  void ask(std::function<void(Result<void>)> done);

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace vckpt
