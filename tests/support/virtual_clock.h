// Virtual time, and the one thread of a simulation: events run one after another, by their times, equal times in the
// order in which they were asked for. Nothing waits; time jumps from event to event.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "runtime/clock.h"
#include "runtime/compute.h"

namespace vckpt {

class VirtualClock final : public Clock {
 public:
  TimePoint now() const override { return now_; }
  TimerId call_at(TimePoint when, std::function<void()> callback) override;
  void cancel(TimerId timer) override;
  // Now, after what is due already.
  void post(std::function<void()> task) { call_at(now_, std::move(task)); }

  // Runs the next event, moving time to it; false when there is none.
  bool run_next();
  // Runs all that is due until `end`, which becomes the time.
  void run_until(TimePoint end);
  void run_for(Duration time) { run_until(now_ + time); }
  // Runs events until `finished`; false when none is left or the next is after `limit`.
  bool run_until(const std::function<bool()>& finished, TimePoint limit);

  std::size_t waiting() const { return events_.size(); }

 private:
  using Key = std::pair<TimePoint, TimerId>;
  TimePoint now_{};
  TimerId last_id_ = 0;
  std::map<Key, std::function<void()>> events_;
  std::unordered_map<TimerId, TimePoint> times_;
};

// The clock of one simulated process: when it is destroyed, all that the process still had to do is gone with it, as
// after kill -9.
class ProcessClock final : public Clock {
 public:
  explicit ProcessClock(VirtualClock& clock) : clock_(clock) {}
  ~ProcessClock() override;
  ProcessClock(const ProcessClock&) = delete;
  ProcessClock& operator=(const ProcessClock&) = delete;

  TimePoint now() const override { return clock_.now(); }
  TimerId call_at(TimePoint when, std::function<void()> callback) override;
  void cancel(TimerId timer) override;
  void post(std::function<void()> task) { call_at(now(), std::move(task)); }

 private:
  VirtualClock& clock_;
  std::unordered_set<TimerId> timers_;
};

// Compute in the simulation: work runs at an event of its own, `done` at a later one.
class VirtualCompute final : public Compute {
 public:
  explicit VirtualCompute(Clock& clock) : clock_(clock) {}
  void run(std::function<void()> work, std::function<void()> done) override;

 private:
  Clock& clock_;
};

}  // namespace vckpt
