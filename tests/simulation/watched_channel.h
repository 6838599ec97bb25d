// A channel that notes what it delivers: the trace of a simulation.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runtime/channel.h"
#include "runtime/clock.h"
#include "schema/digest.h"

namespace vckpt {

struct Delivery {
  TimePoint when;
  std::string receiver;
  PeerId sender;
  std::uint64_t digest = 0;  // of the frame
  bool operator==(const Delivery&) const = default;
};

class WatchedChannel final : public Channel {
 public:
  using Watcher = std::function<void(const Bytes& frame)>;

  // `trace` and `clock` outlive it. `watcher` sees every frame before its receiver does.
  WatchedChannel(std::unique_ptr<Channel> channel, const Clock& clock, std::string name, std::vector<Delivery>& trace,
                 Watcher watcher)
      : channel_(std::move(channel)),
        clock_(clock),
        name_(std::move(name)),
        trace_(trace),
        watcher_(std::move(watcher)) {}

  void on_frame(FrameHandler handler) override {
    channel_->on_frame([this, handler = std::move(handler)](const PeerId& peer, Bytes frame) {
      trace_.push_back({clock_.now(), name_, peer, xxh3_64(frame)});
      if (watcher_) watcher_(frame);
      handler(peer, std::move(frame));
    });
  }
  Result<void> send(const PeerId& peer, Bytes frame) override { return channel_->send(peer, std::move(frame)); }
  void drop(const PeerId& peer) override { channel_->drop(peer); }

 private:
  const std::unique_ptr<Channel> channel_;
  const Clock& clock_;
  const std::string name_;
  std::vector<Delivery>& trace_;
  const Watcher watcher_;
};

}  // namespace vckpt
