// The real seams under a WorkerActor, and the thread they live on: POSIX storage, ZeroMQ to the coordinator (or a
// coordinator in this very process), host transport, TBB.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "runtime/actor.h"
#include "schema/result.h"
#include "vckpt/worker.h"
#include "worker/worker_actor.h"

namespace vckpt {

class WorkerHost {
 public:
  // Joins the session. invalid: options that do not fit together; else what joining says. Blocks.
  static Result<std::unique_ptr<WorkerHost>> open(const ConnectOptions& options);
  // Leaves, if it did not close, and ends all that it began; bounded, also when storage hangs: what a hung call may
  // still write to then stays allocated for ever.
  ~WorkerHost();
  WorkerHost(const WorkerHost&) = delete;
  WorkerHost& operator=(const WorkerHost&) = delete;

  // Runs a step on the actor's thread, later.
  void post(std::function<void(WorkerActor&)> step);
  // Waits until all calls have ended, then leaves.
  Result<void> close();

 private:
  struct Seams;
  explicit WorkerHost(const ConnectOptions& options);

  Result<void> make_seams(const std::string& tcp_host);
  void connect(std::function<void(Result<void>)> done);
  void stop_coordinator();
  void destroy_seams();

  const ConnectOptions options_;
  Actor actor_;
  std::unique_ptr<Seams> seams_;  // touched on the actor only
  bool closed_ = false;
};

}  // namespace vckpt
