// Compute on a small oneTBB arena of its own, so that it neither joins nor feeds the arenas of the program it is in.
#pragma once

#include <memory>

#include "runtime/actor.h"
#include "runtime/compute.h"

namespace vckpt {

// Threading: as Compute; made and destroyed on the actor's thread, or while the actor runs nothing of it.
class TbbCompute final : public Compute {
 public:
  // At most `threads` run at once: 1 at least, and no more than TBB has workers.
  TbbCompute(Actor& actor, int threads);
  // Drops what has not started and every `done`, and waits for the work that runs.
  ~TbbCompute() override;
  TbbCompute(const TbbCompute&) = delete;
  TbbCompute& operator=(const TbbCompute&) = delete;

  // Work that throws has ended; `done` runs all the same. So what work makes starts out as an error.
  void run(std::function<void()> work, std::function<void()> done) override;

 private:
  struct Tasks;
  struct Arena;
  std::shared_ptr<Tasks> tasks_;
  std::unique_ptr<Arena> arena_;
};

}  // namespace vckpt
