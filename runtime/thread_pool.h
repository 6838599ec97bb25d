// Threads for calls that block, with a bounded queue. Processor work goes to Compute.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace vckpt {

// Threading: submit may be called from any thread, close and the destructor by the owner, not from a task of the pool.
class ThreadPool {
 public:
  // At most `queue_max` tasks wait for a thread.
  ThreadPool(std::string name, std::size_t threads, std::size_t queue_max);
  // As close, with the longest wait; a thread whose task is stuck in the kernel even then is left behind, and what its
  // task owns with it.
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  // False when the queue is full or the pool is closed; the task is dropped then. Tasks start in the order of their
  // submission and must not throw.
  bool submit(std::function<void()> task);

  // Takes no more tasks, drops those that wait, and waits for those that run. False when some still run after `wait`.
  bool close(std::chrono::nanoseconds wait);

 private:
  struct State;
  std::shared_ptr<State> state_;
  std::vector<std::thread> threads_;
};

constexpr std::chrono::seconds pool_close_wait{30};

}  // namespace vckpt
