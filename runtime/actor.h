// An actor: one thread, one mailbox, timers, and file descriptors it watches. Everything an actor owns is touched by
// that thread only; others post to it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "runtime/clock.h"

namespace vckpt {

// Threading: `post` may be called from any thread, all else only on the actor's own thread (from tasks, timers,
// watches).
class Actor {
 public:
  // The thread runs with all signals blocked.
  explicit Actor(std::string name);
  // Stops and joins: tasks posted before stop run, later ones are dropped.
  ~Actor();
  Actor(const Actor&) = delete;
  Actor& operator=(const Actor&) = delete;

  void post(std::function<void()> task);
  // Runs `task` on the actor and waits for it; not from the actor itself.
  void call(std::function<void()> task);
  bool on_this_thread() const;

  // The machine's clock, with timers on this actor.
  Clock& clock();

  // Runs `ready(events)` (EPOLL*) while the descriptor is ready. Level triggered.
  void watch(int descriptor, std::uint32_t events, std::function<void(std::uint32_t)> ready);
  void unwatch(int descriptor);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace vckpt
