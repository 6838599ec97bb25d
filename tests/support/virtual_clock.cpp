#include "tests/support/virtual_clock.h"

#include <algorithm>
#include <vector>

#include "schema/result.h"

namespace vckpt {
namespace {

constexpr std::uint64_t events_per_run_max = 100'000'000;  // more is a loop that never ends

}  // namespace

TimerId VirtualClock::call_at(TimePoint when, std::function<void()> callback) {
  const TimerId id = ++last_id_;
  const TimePoint due = std::max(when, now_);
  events_.emplace(Key(due, id), std::move(callback));
  times_.emplace(id, due);
  return id;
}

void VirtualClock::cancel(TimerId timer) {
  const auto time = times_.find(timer);
  if (time == times_.end()) return;
  const auto event = events_.find(Key(time->second, timer));
  // The callback may own what cancels more: it goes when the tables are whole again.
  const std::function<void()> callback = std::move(event->second);
  events_.erase(event);
  times_.erase(time);
}

bool VirtualClock::run_next() {
  if (events_.empty()) return false;
  const auto first = events_.begin();
  now_ = first->first.first;
  const std::function<void()> callback = std::move(first->second);
  times_.erase(first->first.second);
  events_.erase(first);
  callback();
  return true;
}

void VirtualClock::run_until(TimePoint end) {
  static_cast<void>(run_until([] { return false; }, end));
  now_ = std::max(now_, end);
}

bool VirtualClock::run_until(const std::function<bool()>& finished, TimePoint limit) {
  for (std::uint64_t i = 0; i < events_per_run_max; ++i) {
    if (finished()) return true;
    if (events_.empty() || events_.begin()->first.first > limit) return false;
    run_next();
  }
  VCKPT_ASSERT(!"the simulation never comes to rest");
  return false;
}

ProcessClock::~ProcessClock() {
  const std::vector<TimerId> left(timers_.begin(), timers_.end());
  for (const TimerId timer : left) clock_.cancel(timer);
}

TimerId ProcessClock::call_at(TimePoint when, std::function<void()> callback) {
  const auto id = std::make_shared<TimerId>(0);
  *id = clock_.call_at(when, [this, id, callback = std::move(callback)] {
    timers_.erase(*id);
    callback();
  });
  timers_.insert(*id);
  return *id;
}

void ProcessClock::cancel(TimerId timer) {
  if (timers_.erase(timer) != 0) clock_.cancel(timer);
}

void VirtualCompute::run(std::function<void()> work, std::function<void()> done) {
  clock_.call_at(clock_.now(), [this, work = std::move(work), done = std::move(done)] {
    work();
    clock_.call_at(clock_.now(), done);
  });
}

}  // namespace vckpt
