// Channel worlds on a real actor: over ZeroMQ on loopback, and inside one process.
#pragma once

#include "tests/support/channel_world.h"

namespace vckpt::testing {

std::unique_ptr<ChannelWorld> make_zmq_world(std::size_t worker_count);

// One channel pair has one worker: each further worker stands in a pair of its own, and the coordinator's side is a
// fan-out over the pairs.
std::unique_ptr<ChannelWorld> make_local_world(std::size_t worker_count);

}  // namespace vckpt::testing
