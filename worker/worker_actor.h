// Runs a worker's logic over the seams: feeds it what happens, does what it asks. Decides nothing.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "runtime/arena.h"
#include "runtime/channel.h"
#include "runtime/clock.h"
#include "runtime/compute.h"
#include "runtime/storage.h"
#include "runtime/transport.h"
#include "schema/codec.h"
#include "worker/load_run.h"
#include "worker/save_run.h"
#include "worker/tensor_table.h"
#include "worker/worker_logic.h"

namespace vckpt {

constexpr std::uint64_t worker_message_bytes_max = std::uint64_t{1} << 30;  // of what the coordinator sends

struct WorkerSeams {
  Clock& clock;
  Channel& channel;
  Storage& storage;
  Transport& transport;
  Compute& compute;
  // Asked once, when the session is complete: how many of its ranks share this host is known then. The arena outlives
  // the storage.
  std::function<Arena&(std::uint32_t ranks_on_host)> staging;
};

// Threading: lives on one actor, which owns the seams too; callbacks run there. What it was given is not touched after
// it is destroyed, except by compute tasks and storage calls that run already: destroy it first, the seams after it.
class WorkerActor {
 public:
  using Connected = std::function<void(Result<Joined>)>;
  using Table = std::shared_ptr<const TensorTable>;
  struct SaveCallbacks {
    std::function<void(CheckpointId)> known;     // at most once
    std::function<void(Result<void>)> released;  // once: the state may change again
    std::function<void(Result<Report>)> ended;   // once, after released
  };

  WorkerActor(WorkerSeams seams, WorkerSettings settings);
  ~WorkerActor();
  WorkerActor(const WorkerActor&) = delete;
  WorkerActor& operator=(const WorkerActor&) = delete;

  void start(Connected connected);
  // An error instead of a table: this rank cannot take part, and tells the others so.
  void save(Step step, Result<Table> table, SaveOptions options, SaveCallbacks callbacks);
  void load(Selector selector, Result<Table> table, LoadOptions options, std::function<void(Result<LoadEnd>)> ended);
  // Ends when all that was begun has.
  void close(std::function<void()> closed);
  // Gives up all that was begun; ends when no run touches the caller's memory any more.
  void leave(std::function<void()> closed);

 private:
  struct SaveState {
    Table table;
    SaveCallbacks callbacks;
    std::shared_ptr<SaveRun> run;
  };
  struct LoadState {
    Table table;
    std::function<void(Result<LoadEnd>)> ended;
    std::shared_ptr<LoadRun> run;
  };

  void dispatch(WorkerEvent event);
  void on_frame(const Bytes& frame);
  // Wraps a completion so that it does nothing once this actor is gone.
  template <typename Function>
  auto guarded(Function function);

  void run(const effect::ReadRunRecord& effect);
  void run(const effect::SendMessage& effect);
  void run(const effect::Connected& effect);
  void run(const effect::StartSave& effect);
  void run(const effect::StartLoad& effect);
  void run(const effect::StopRun& effect);
  void run(const effect::ReadDecision& effect);
  void run(const effect::SaveKnown& effect);
  void run(const effect::SaveReleased& effect);
  void run(const effect::SaveEnded& effect);
  void run(const effect::LoadEnded& effect);
  void run(const effect::Closed& effect);
  void run(const effect::WakeAt& effect);
  void resume_runs();

  WorkerSeams seams_;
  WorkerSettings settings_;
  WorkerLogic logic_;
  FrameJoiner joiner_{worker_message_bytes_max};
  const std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
  Connected connected_;
  std::function<void()> closed_;
  Arena* arena_ = nullptr;
  std::vector<Peer> peers_;
  std::uint64_t ordinals_ = 0;
  std::uint64_t messages_sent_ = 0;
  std::map<Ordinal, SaveState> saves_;
  std::map<Ordinal, LoadState> loads_;
  std::deque<WorkerEvent> events_;  // to be handled after the one in hand
  bool dispatching_ = false;
  TimerId timer_ = 0;
};

}  // namespace vckpt
