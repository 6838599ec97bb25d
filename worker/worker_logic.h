// What a worker does about its calls, decided without I/O, thread or clock: events and the time go in, effects come
// out. It joins the session, numbers and orders calls, resends what was not answered, hands slices to runs, reports
// them, and ends every call exactly once: by the coordinator's decision, or, when the coordinator is lost, by the
// decision on storage. No wait is silent: a local phase that does not move for the deadline fails the call, a silent
// coordinator is lost. At most two saves are in flight; further saves, and loads while anything is in flight, wait
// their turn.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "runtime/time_point.h"
#include "worker/membership.h"
#include "worker/worker_events.h"

namespace vckpt {

constexpr std::size_t saves_in_flight_max = 2;

class WorkerLogic {
 public:
  explicit WorkerLogic(WorkerSettings settings);
  ~WorkerLogic();
  WorkerLogic(const WorkerLogic&) = delete;
  WorkerLogic& operator=(const WorkerLogic&) = delete;

  std::vector<WorkerEffect> on(const WorkerEvent& event, TimePoint now);

  std::uint64_t dropped_messages() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace vckpt
