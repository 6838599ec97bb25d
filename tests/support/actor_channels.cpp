#include "tests/support/actor_channels.h"

#include <algorithm>

#include "runtime/actor.h"
#include "runtime/local_channel.h"
#include "runtime/zmq_channel.h"
#include "tests/support/actor_world.h"

namespace vckpt::testing {
namespace {

Incarnation incarnation(std::size_t worker) { return Incarnation{0xABC000 + worker}; }

class ActorWorld : public ChannelWorld {
 public:
  ~ActorWorld() override {
    actor_.call([this] {
      workers_.clear();
      coordinator_.reset();
    });
  }
  void run(std::function<void()> step) override { run_on(actor_, step); }
  bool settle(std::function<bool()> reached) override { return settle_on(actor_, reached); }
  std::size_t worker_count() const override { return workers_.size(); }
  PeerId peer(std::size_t worker) const override { return worker_peer(incarnation(worker)); }
  Channel& coordinator() override { return *coordinator_; }
  Channel& worker(std::size_t index) override { return *workers_.at(index); }
  void end_worker(std::size_t index) override { workers_.at(index).reset(); }

 protected:
  Actor actor_{"channels"};
  std::unique_ptr<Channel> coordinator_;
  std::vector<std::unique_ptr<Channel>> workers_;
};

class ZmqWorld final : public ActorWorld {
 public:
  explicit ZmqWorld(std::size_t worker_count) {
    actor_.call([&] {
      auto bound = ZmqChannel::bind(actor_, {});
      VCKPT_ASSERT(bound.has_value());
      const std::string endpoint = bound.value()->address();
      coordinator_ = std::move(bound).value();
      for (std::size_t i = 0; i < worker_count; ++i) {
        auto connected = ZmqChannel::connect(actor_, endpoint, incarnation(i));
        VCKPT_ASSERT(connected.has_value());
        workers_.push_back(std::move(connected).value());
      }
    });
  }
};

// A coordinator's channel over several others, by who is on the far side.
class FanOut final : public Channel {
 public:
  void add(PeerId peer, std::unique_ptr<Channel> channel) {
    branches_.push_back({std::move(peer), std::move(channel)});
  }
  void on_frame(FrameHandler handler) override {
    for (auto& branch : branches_) branch.channel->on_frame(handler);
  }
  Result<void> send(const PeerId& peer, Bytes frame) override {
    return branch_of(peer).channel->send(peer, std::move(frame));
  }
  void drop(const PeerId& peer) override { branch_of(peer).channel->drop(peer); }

 private:
  struct Branch {
    PeerId peer;
    std::unique_ptr<Channel> channel;
  };
  Branch& branch_of(const PeerId& peer) {
    const auto found = std::find_if(branches_.begin(), branches_.end(), [&](auto& b) { return b.peer == peer; });
    return found != branches_.end() ? *found : branches_.front();
  }
  std::vector<Branch> branches_;
};

class LocalWorld final : public ActorWorld {
 public:
  explicit LocalWorld(std::size_t worker_count) {
    auto fan_out = std::make_unique<FanOut>();
    for (std::size_t i = 0; i < worker_count; ++i) {
      LocalChannels pair = join_locally(actor_, actor_, incarnation(i));
      fan_out->add(peer(i), std::move(pair.coordinator));
      workers_.push_back(std::move(pair.worker));
    }
    coordinator_ = std::move(fan_out);
  }
};

}  // namespace

std::unique_ptr<ChannelWorld> make_zmq_world(std::size_t worker_count) {
  return std::make_unique<ZmqWorld>(worker_count);
}

std::unique_ptr<ChannelWorld> make_local_world(std::size_t worker_count) {
  return std::make_unique<LocalWorld>(worker_count);
}

}  // namespace vckpt::testing
