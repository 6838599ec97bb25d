// The way back from other threads to an actor. Shared with them, so that one that is late finds it closed instead of
// gone.
#pragma once

#include <atomic>
#include <functional>
#include <mutex>
#include <utility>
#include <vector>

#include "runtime/actor.h"

namespace vckpt {

// Threading: post and closed from any thread; close and drop by the owner, on the actor's thread or after its end.
class Outbox {
 public:
  explicit Outbox(Actor& actor) : actor_(&actor) {}

  // Runs the completion on the actor, unless closed by then; in any case it is destroyed there or by drop.
  void post(std::function<void()> completion) {
    const std::lock_guard lock(mutex_);
    if (actor_ != nullptr) {
      actor_->post(std::move(completion));
    } else {
      dropped_.push_back(std::move(completion));
    }
  }

  // From now on nothing is posted; completions that are on their way ask `closed`.
  void close() {
    closed_ = true;
    const std::lock_guard lock(mutex_);
    actor_ = nullptr;
  }
  bool closed() const { return closed_; }

  // Destroys what came after close.
  void drop() {
    std::vector<std::function<void()>> late;  // destroyed without the lock
    const std::lock_guard lock(mutex_);
    late.swap(dropped_);
  }

 private:
  std::atomic<bool> closed_ = false;
  std::mutex mutex_;  // guards the two below
  Actor* actor_;
  std::vector<std::function<void()>> dropped_;
};

}  // namespace vckpt
