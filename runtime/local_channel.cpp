#include "runtime/local_channel.h"

#include <deque>
#include <mutex>
#include <utility>

namespace vckpt {
namespace {

// Frames on their way to one side. Shared by both sides: `mutex` guards all of it.
struct Inbox {
  std::mutex mutex;
  Actor* actor = nullptr;  // of the receiving side; null once that side is gone
  std::deque<Bytes> frames;
  std::shared_ptr<Channel::FrameHandler> handler;
  bool delivery_posted = false;
};

void post_delivery(const std::shared_ptr<Inbox>& inbox, const PeerId& from);

// On the receiving side's actor. One frame a task: the handler may destroy its channel, and others get their turn.
void deliver(const std::shared_ptr<Inbox>& inbox, const PeerId& from) {
  std::unique_lock lock(inbox->mutex);
  inbox->delivery_posted = false;
  if (inbox->actor == nullptr || inbox->frames.empty()) return;
  Bytes frame = std::move(inbox->frames.front());
  inbox->frames.pop_front();
  const auto handler = inbox->handler;
  post_delivery(inbox, from);
  lock.unlock();
  (*handler)(from, std::move(frame));
}

// With the lock held.
void post_delivery(const std::shared_ptr<Inbox>& inbox, const PeerId& from) {
  if (inbox->delivery_posted || inbox->frames.empty() || !inbox->handler) return;
  inbox->delivery_posted = true;
  inbox->actor->post([inbox, from] { deliver(inbox, from); });
}

class LocalChannel final : public Channel {
 public:
  // `peer`: how this side calls the other; `self`: how the other calls this one.
  LocalChannel(PeerId self, PeerId peer, std::shared_ptr<Inbox> own, std::shared_ptr<Inbox> other)
      : self_(std::move(self)), peer_(std::move(peer)), own_(std::move(own)), other_(std::move(other)) {}

  ~LocalChannel() override {
    std::shared_ptr<FrameHandler> handler;  // may own much: goes after the lock
    const std::lock_guard lock(own_->mutex);
    own_->actor = nullptr;
    own_->frames.clear();
    handler.swap(own_->handler);
  }
  LocalChannel(const LocalChannel&) = delete;
  LocalChannel& operator=(const LocalChannel&) = delete;

  void on_frame(FrameHandler handler) override {
    const std::lock_guard lock(own_->mutex);
    VCKPT_ASSERT(!own_->handler);
    own_->handler = std::make_shared<FrameHandler>(std::move(handler));
    post_delivery(own_, peer_);
  }

  Result<void> send(const PeerId& peer, Bytes frame) override {
    VCKPT_TRY_VOID(check_frame(peer, frame));
    if (peer != peer_) return unavailable("peer '" + peer + "' is not connected");
    const std::lock_guard lock(other_->mutex);
    if (other_->actor == nullptr) {
      // A worker cannot tell whether its coordinator is there: what it sends is lost.
      if (peer_ == coordinator_peer) return {};
      return unavailable("peer '" + peer + "' is not connected");
    }
    if (other_->frames.size() >= channel_queue_frames_max) {
      return exhausted("the queue to " + peer + " is full: " + std::to_string(other_->frames.size()) + " frames");
    }
    other_->frames.push_back(std::move(frame));
    post_delivery(other_, self_);
    return {};
  }

  void drop(const PeerId& peer) override {
    if (peer != peer_) return;
    const std::lock_guard lock(other_->mutex);
    other_->frames.clear();
  }

 private:
  const PeerId self_;
  const PeerId peer_;
  const std::shared_ptr<Inbox> own_;
  const std::shared_ptr<Inbox> other_;
};

}  // namespace

LocalChannels join_locally(Actor& coordinator, Actor& worker, Incarnation incarnation) {
  const auto to_coordinator = std::make_shared<Inbox>();
  const auto to_worker = std::make_shared<Inbox>();
  to_coordinator->actor = &coordinator;
  to_worker->actor = &worker;
  const PeerId worker_id = worker_peer(incarnation);
  return {std::make_unique<LocalChannel>(coordinator_peer, worker_id, to_coordinator, to_worker),
          std::make_unique<LocalChannel>(worker_id, coordinator_peer, to_worker, to_coordinator)};
}

}  // namespace vckpt
