// Runs the coordinator's logic over the seams: frames in and out through the codec, plans on Compute, records on
// Storage. It has no thread of its own: it lives on the actor (or in the simulation) to which its seams belong. Also
// the server of a one-process job, over a local channel.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "coordinator/call_context.h"
#include "coordinator/event.h"
#include "runtime/channel.h"
#include "runtime/clock.h"
#include "runtime/compute.h"
#include "runtime/storage.h"

namespace vckpt {

constexpr std::uint64_t joined_message_bytes_max = std::uint64_t{1} << 30;  // of one message that travels in parts
constexpr std::size_t peers_with_parts_max = 65536;                         // with a message under way

struct CoordinatorOptions {
  coordinator::Settings settings;  // `root` is taken from the storage
  std::string run_name;            // empty: whatever RUN says; when RUN is missing, a name made from the nonce
  Nonce run_nonce;                 // of RUN, if it is missing
  std::string endpoint;            // for the epoch record; empty: a writer without a server
};

// Threading: made, used and destroyed on the actor of its seams, which outlive it.
class CoordinatorActor {
 public:
  struct Seams {
    Clock& clock;
    Channel& channel;
    Storage& storage;
    Compute& compute;
  };
  struct Hooks {
    std::function<void(const EpochRecord&)> serving;   // workers are served from now on
    std::function<void(std::optional<Error>)> exited;  // once, the last one; it may destroy the actor
    std::function<void(const std::string& line)> log;  // phase changes, for people; may be empty
  };

  CoordinatorActor(Seams seams, CoordinatorOptions options, Hooks hooks);
  ~CoordinatorActor();
  CoordinatorActor(const CoordinatorActor&) = delete;
  CoordinatorActor& operator=(const CoordinatorActor&) = delete;

  // Takes the channel's frames; claims an epoch, recovers, serves.
  void start();
  // Drains: no new calls, decides what is in flight, leaves after the goodbyes or the grace. Again: no more grace.
  void stop();

  std::uint64_t dropped_messages() const;

 private:
  struct State;
  std::shared_ptr<State> state_;  // completions that come after the end find it gone
};

}  // namespace vckpt
