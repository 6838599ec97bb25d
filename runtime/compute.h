// Work for the processor (copies, digests, planning), off the actor's thread. A seam of two lines, so that the
// simulator runs it in place.
#pragma once

#include <functional>

namespace vckpt {

// Threading: one actor owns a Compute; `done` runs on that actor, never from inside run. `work` must not block on I/O.
class Compute {
 public:
  virtual ~Compute() = default;
  virtual void run(std::function<void()> work, std::function<void()> done) = 0;
};

}  // namespace vckpt
