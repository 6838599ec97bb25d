// Two channels joined inside one process: a coordinator and its only worker. Each side belongs to an actor, possibly
// the same one.
#pragma once

#include <memory>

#include "runtime/actor.h"
#include "runtime/channel.h"

namespace vckpt {

struct LocalChannels {
  std::unique_ptr<Channel> coordinator;
  std::unique_ptr<Channel> worker;
};

// Each side is destroyed before its actor. Frames for a side without handler wait, under the same bound.
LocalChannels join_locally(Actor& coordinator, Actor& worker, Incarnation incarnation);

}  // namespace vckpt
