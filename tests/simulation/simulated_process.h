// The processes of a simulated job. Destroying one is kill -9: nothing it had begun goes on, but for what already lies
// on the disk or is on its way over the network.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "coordinator/coordinator_actor.h"
#include "runtime/arena.h"
#include "tests/simulation/trainer.h"
#include "tests/simulation/watched_channel.h"
#include "tests/support/memory_storage.h"
#include "tests/support/memory_transport.h"
#include "tests/support/virtual_clock.h"
#include "worker/worker_actor.h"

namespace vckpt {

struct CoordinatorProcess {
  CoordinatorProcess(VirtualClock& time, MemoryDisk& disk, std::unique_ptr<WatchedChannel> made)
      : clock(time), compute(clock), storage(clock, disk), channel(std::move(made)) {}

  ProcessClock clock;
  VirtualCompute compute;
  MemoryStorage storage;
  std::unique_ptr<WatchedChannel> channel;
  std::optional<EpochRecord> serving;
  std::optional<std::optional<Error>> exited;
  std::unique_ptr<CoordinatorActor> actor;
};

struct RankProcess {
  RankProcess(VirtualClock& time, MemoryDisk& disk, MemoryNetwork& bulk, std::uint64_t staging_bytes)
      : arena(staging_bytes), clock(time), compute(clock), storage(clock, disk), transport(bulk, clock) {}

  std::unique_ptr<Trainer> trainer;
  Arena arena;  // outlives all that may hold a lease
  ProcessClock clock;
  VirtualCompute compute;
  MemoryStorage storage;
  MemoryTransport transport;
  std::unique_ptr<WatchedChannel> channel;
  Incarnation incarnation;
  FrameJoiner heard{std::uint64_t{1} << 30};
  std::optional<Result<Joined>> connected;
  std::unique_ptr<WorkerActor> actor;
};

}  // namespace vckpt
