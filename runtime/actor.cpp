#include "runtime/actor.h"

#include <pthread.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <future>
#include <map>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "runtime/blocked_signals.h"
#include "schema/result.h"

namespace vckpt {
namespace {

using Task = std::function<void()>;

constexpr std::uint64_t wake_watch = 0;
constexpr int events_per_wait = 64;
constexpr int wait_ms_max = 60'000;

// Timers of one actor, on the machine's monotonic clock.
class TimerClock final : public Clock {
 public:
  explicit TimerClock(std::function<bool()> on_this_thread) : on_this_thread_(std::move(on_this_thread)) {}

  TimePoint now() const override { return std::chrono::steady_clock::now(); }

  TimerId call_at(TimePoint when, Task callback) override {
    VCKPT_ASSERT(on_this_thread_());
    const TimerId id = ++last_id_;
    timers_.emplace(std::pair(when, id), std::move(callback));
    times_.emplace(id, when);
    return id;
  }

  void cancel(TimerId id) override {
    VCKPT_ASSERT(on_this_thread_());
    const auto time = times_.find(id);
    if (time == times_.end()) return;
    timers_.erase(std::pair(time->second, id));
    times_.erase(time);
  }

  // Runs what is due now; timers that these callbacks set wait for the next turn, so that I/O is never starved.
  void run_due() {
    const TimePoint until = now();
    const TimerId last = last_id_;
    for (auto first = timers_.begin(); first != timers_.end() && first->first.first <= until; first = timers_.begin()) {
      if (first->first.second > last) return;
      Task callback = std::move(first->second);
      times_.erase(first->first.second);
      timers_.erase(first);
      callback();
    }
  }

  // Until the next timer, rounded up: no timer runs early. At most wait_ms_max.
  int wait_ms() const {
    if (timers_.empty()) return wait_ms_max;
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(timers_.begin()->first.first - now()).count();
    return static_cast<int>(std::clamp<std::int64_t>(left, 0, wait_ms_max));
  }

  void clear() {
    timers_.clear();
    times_.clear();
  }

 private:
  std::function<bool()> on_this_thread_;
  std::map<std::pair<TimePoint, TimerId>, Task> timers_;
  std::unordered_map<TimerId, TimePoint> times_;
  TimerId last_id_ = 0;
};

}  // namespace

struct Actor::State {
  struct Watch {
    int descriptor;
    std::shared_ptr<std::function<void(std::uint32_t)>> ready;
  };

  State() : clock([this] { return on_this_thread(); }) {}

  bool on_this_thread() const { return thread_id.load() == std::this_thread::get_id(); }

  // False when the actor stops and the task was dropped.
  bool push(Task task) {
    const std::lock_guard lock(mutex);
    if (stopping) return false;
    mailbox.push_back(std::move(task));
    if (mailbox.size() == 1) wake();
    return true;
  }

  void wake() const {
    const std::uint64_t one = 1;
    // A full counter wakes as well, so nothing here can go wrong in a way that matters.
    while (::write(wake_descriptor, &one, sizeof one) < 0 && errno == EINTR) {
    }
  }

  // Everything posted so far, in order; false once the actor stops and nothing is left.
  bool run_mailbox() {
    std::vector<Task> tasks;
    {
      const std::lock_guard lock(mutex);
      tasks.swap(mailbox);
      if (tasks.empty() && stopping) return false;
    }
    for (Task& task : tasks) {
      task();
      task = nullptr;
    }
    return true;
  }

  void run_ready(int wait_ms) {
    std::array<epoll_event, events_per_wait> events;
    const int count = ::epoll_wait(poll_descriptor, events.data(), events_per_wait, wait_ms);
    for (int i = 0; i < count; ++i) {
      const auto& event = events[static_cast<std::size_t>(i)];
      if (event.data.u64 == wake_watch) {
        std::uint64_t posts = 0;
        static_cast<void>(::read(wake_descriptor, &posts, sizeof posts));
        continue;
      }
      // Another handler of this turn may have unwatched it, or watched the same descriptor anew under another number.
      const auto watch = watches.find(event.data.u64);
      if (watch == watches.end()) continue;
      const auto ready = watch->second.ready;
      (*ready)(event.events);
    }
  }

  void run() {
    thread_id.store(std::this_thread::get_id());
    while (run_mailbox()) {
      clock.run_due();
      bool waiting = false;
      {
        const std::lock_guard lock(mutex);
        waiting = mailbox.empty() && !stopping;
      }
      run_ready(waiting ? clock.wait_ms() : 0);
    }
    watches.clear();
    watch_numbers.clear();
    clock.clear();
  }

  int poll_descriptor = -1;
  int wake_descriptor = -1;
  std::atomic<std::thread::id> thread_id;
  std::thread thread;

  std::mutex mutex;  // guards the two below
  std::vector<Task> mailbox;
  bool stopping = false;

  // The actor's thread only.
  TimerClock clock;
  std::unordered_map<std::uint64_t, Watch> watches;
  std::unordered_map<int, std::uint64_t> watch_numbers;
  std::uint64_t last_watch = wake_watch;
};

Actor::Actor(std::string name) : state_(std::make_unique<State>()) {
  State* const state = state_.get();
  state->poll_descriptor = ::epoll_create1(EPOLL_CLOEXEC);
  state->wake_descriptor = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  VCKPT_ASSERT(state->poll_descriptor >= 0 && state->wake_descriptor >= 0);
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = wake_watch;
  VCKPT_ASSERT(::epoll_ctl(state->poll_descriptor, EPOLL_CTL_ADD, state->wake_descriptor, &event) == 0);
  const BlockedSignals blocked;
  name.resize(std::min<std::size_t>(name.size(), 15));  // the kernel's limit
  state->thread = std::thread([state, name = std::move(name)] {
    pthread_setname_np(pthread_self(), name.c_str());
    state->run();
  });
}

Actor::~Actor() {
  VCKPT_ASSERT(!on_this_thread());
  {
    const std::lock_guard lock(state_->mutex);
    state_->stopping = true;
    state_->wake();
  }
  state_->thread.join();
  ::close(state_->wake_descriptor);
  ::close(state_->poll_descriptor);
}

void Actor::post(std::function<void()> task) { static_cast<void>(state_->push(std::move(task))); }

void Actor::call(std::function<void()> task) {
  VCKPT_ASSERT(!on_this_thread());
  std::promise<void> done;
  const bool posted = state_->push([&task, &done] {
    task();
    done.set_value();
  });
  VCKPT_ASSERT(posted);
  done.get_future().wait();
}

bool Actor::on_this_thread() const { return state_->on_this_thread(); }

Clock& Actor::clock() { return state_->clock; }

void Actor::watch(int descriptor, std::uint32_t events, std::function<void(std::uint32_t)> ready) {
  VCKPT_ASSERT(on_this_thread());
  unwatch(descriptor);
  const std::uint64_t number = ++state_->last_watch;
  epoll_event event{};
  event.events = events;
  event.data.u64 = number;
  VCKPT_ASSERT(::epoll_ctl(state_->poll_descriptor, EPOLL_CTL_ADD, descriptor, &event) == 0);
  state_->watches.emplace(
      number, State::Watch{descriptor, std::make_shared<std::function<void(std::uint32_t)>>(std::move(ready))});
  state_->watch_numbers.emplace(descriptor, number);
}

void Actor::unwatch(int descriptor) {
  VCKPT_ASSERT(on_this_thread());
  const auto number = state_->watch_numbers.find(descriptor);
  if (number == state_->watch_numbers.end()) return;
  // A descriptor that was closed before has left the poll set by itself.
  static_cast<void>(::epoll_ctl(state_->poll_descriptor, EPOLL_CTL_DEL, descriptor, nullptr));
  state_->watches.erase(number->second);
  state_->watch_numbers.erase(number);
}

}  // namespace vckpt
