// Time as a seam: the machine's monotonic clock, or virtual time in the simulator. No decision ever uses wall-clock
// time.
#pragma once

#include <cstdint>
#include <functional>

#include "runtime/time_point.h"

namespace vckpt {

using TimerId = std::uint64_t;  // never 0

// Threading: one actor owns a Clock; callbacks run on that actor, never from inside call_at or cancel.
class Clock {
 public:
  virtual ~Clock() = default;
  virtual TimePoint now() const = 0;
  // Runs `callback` once, not before `when`. Timers that are due run in the order of their times.
  virtual TimerId call_at(TimePoint when, std::function<void()> callback) = 0;
  // A cancelled timer never runs. Unknown or finished ids are ignored.
  virtual void cancel(TimerId timer) = 0;
};

}  // namespace vckpt
