#include "runtime/tbb_compute.h"

#include <tbb/global_control.h>
#include <tbb/task_arena.h>

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <utility>

#include "runtime/outbox.h"
#include "schema/result.h"

namespace vckpt {
namespace {

constexpr std::chrono::seconds running_work_max{60};

// TBB has a worker less than there are processors, for the thread that calls it; asking for more only makes it warn.
int available(int threads) {
  const auto all = tbb::global_control::active_value(tbb::global_control::max_allowed_parallelism);
  return std::clamp(threads, 1, std::max(static_cast<int>(all) - 1, 1));
}

}  // namespace

// What tasks touch when they end; shared with them, while the arena is the owner's alone.
struct TbbCompute::Tasks {
  explicit Tasks(Actor& actor) : outbox(actor) {}

  void finish(std::function<void()> completion) {
    outbox.post(std::move(completion));
    const std::lock_guard lock(mutex);
    --open;
    ended.notify_all();
  }

  Outbox outbox;
  std::mutex mutex;  // guards `open`
  std::condition_variable ended;
  std::size_t open = 0;  // tasks that have not ended
};

struct TbbCompute::Arena {
  explicit Arena(int threads) : arena(threads, 0) {}
  tbb::task_arena arena;
};

TbbCompute::TbbCompute(Actor& actor, int threads)
    : tasks_(std::make_shared<Tasks>(actor)), arena_(std::make_unique<Arena>(available(threads))) {}

TbbCompute::~TbbCompute() {
  tasks_->outbox.close();
  std::unique_lock lock(tasks_->mutex);
  VCKPT_ASSERT(tasks_->ended.wait_for(lock, running_work_max, [this] { return tasks_->open == 0; }));
  lock.unlock();
  tasks_->outbox.drop();
}

void TbbCompute::run(std::function<void()> work, std::function<void()> done) {
  struct Task {
    std::function<void()> work;
    std::function<void()> done;
  };
  const auto task = std::make_shared<Task>(Task{std::move(work), std::move(done)});
  {
    const std::lock_guard lock(tasks_->mutex);
    ++tasks_->open;
  }
  arena_->arena.enqueue([tasks = tasks_, task] {
    // Nothing may pass into TBB, which would end the process or forget the task.
    try {
      if (!tasks->outbox.closed()) task->work();
    } catch (...) {
    }
    // What the two hold goes back to the actor with the completion.
    auto completion = [tasks, held = std::move(*task)] {
      if (!tasks->outbox.closed()) held.done();
    };
    tasks->finish(std::move(completion));
  });
}

}  // namespace vckpt
