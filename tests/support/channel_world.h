// A coordinator and some workers, joined by one kind of channel, as the contract suite drives them.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "runtime/channel.h"

namespace vckpt::testing {

class ChannelWorld {
 public:
  virtual ~ChannelWorld() = default;
  // Runs `step` where the channels live; nothing is delivered meanwhile.
  virtual void run(std::function<void()> step) = 0;
  // Lets the world go on until `reached` (asked where the channels live) or some ten seconds have passed: its last
  // answer.
  virtual bool settle(std::function<bool()> reached) = 0;

  virtual std::size_t worker_count() const = 0;
  virtual PeerId peer(std::size_t worker) const = 0;
  // Only inside run and settle.
  virtual Channel& coordinator() = 0;
  virtual Channel& worker(std::size_t index) = 0;
  virtual void end_worker(std::size_t index) = 0;
};

using MakeChannelWorld = std::function<std::unique_ptr<ChannelWorld>(std::size_t worker_count)>;

}  // namespace vckpt::testing
