#include "runtime/thread_pool.h"

#include <pthread.h>

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <utility>

#include "runtime/blocked_signals.h"

namespace vckpt {

// Shared by the threads, so that one that is left behind still has its queue.
struct ThreadPool::State {
  std::mutex mutex;  // guards all below
  std::condition_variable work;
  std::condition_variable ended;
  std::deque<std::function<void()>> queue;
  std::size_t queue_max = 0;
  std::size_t threads = 0;  // alive
  bool closed = false;

  void run() {
    std::unique_lock lock(mutex);
    for (;;) {
      work.wait(lock, [this] { return closed || !queue.empty(); });
      if (closed) break;
      std::function<void()> task = std::move(queue.front());
      queue.pop_front();
      lock.unlock();
      task();
      task = nullptr;
      lock.lock();
    }
    --threads;
    ended.notify_all();
  }
};

ThreadPool::ThreadPool(std::string name, std::size_t threads, std::size_t queue_max)
    : state_(std::make_shared<State>()) {
  state_->queue_max = queue_max;
  state_->threads = threads;
  name.resize(std::min<std::size_t>(name.size(), 15));  // the kernel's limit
  const BlockedSignals blocked;
  for (std::size_t i = 0; i < threads; ++i) {
    threads_.emplace_back([state = state_, name] {
      pthread_setname_np(pthread_self(), name.c_str());
      state->run();
    });
  }
}

ThreadPool::~ThreadPool() {
  const bool ended = close(pool_close_wait);
  for (auto& thread : threads_) ended ? thread.join() : thread.detach();
}

bool ThreadPool::submit(std::function<void()> task) {
  const std::lock_guard lock(state_->mutex);
  if (state_->closed || state_->queue.size() >= state_->queue_max) return false;
  state_->queue.push_back(std::move(task));
  state_->work.notify_one();
  return true;
}

bool ThreadPool::close(std::chrono::nanoseconds wait) {
  std::deque<std::function<void()>> dropped;
  std::unique_lock lock(state_->mutex);
  state_->closed = true;
  dropped.swap(state_->queue);
  state_->work.notify_all();
  return state_->ended.wait_for(lock, wait, [this] { return state_->threads == 0; });
}

}  // namespace vckpt
