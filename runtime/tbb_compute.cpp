#include "runtime/tbb_compute.h"

#include <tbb/global_control.h>
#include <tbb/task_arena.h>

#include <algorithm>
#include <condition_variable>
#include <deque>
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

// What is to be done and what was; shared with TBB's threads, while the arena is the owner's alone. Tasks pass through
// a queue of ours, because what passes through TBB's own is invisible to the thread sanitizer.
struct TbbCompute::Tasks : std::enable_shared_from_this<Tasks> {
  struct Task {
    std::function<void()> work;
    std::function<void()> done;
  };

  explicit Tasks(Actor& actor) : outbox(actor) {}

  void add(Task task) {
    const std::lock_guard lock(mutex);
    waiting.push_back(std::move(task));
    ++open;
  }

  void run_next() {
    std::unique_lock lock(mutex);
    Task task = std::move(waiting.front());
    waiting.pop_front();
    lock.unlock();
    // Nothing may pass into TBB, which would end the process or forget the task.
    try {
      if (!outbox.closed()) task.work();
    } catch (...) {
    }
    // What the two hold goes back to the actor with the completion.
    outbox.post([self = shared_from_this(), held = std::move(task)] {
      if (!self->outbox.closed()) held.done();
    });
    lock.lock();
    --open;
    ended.notify_all();
  }

  Outbox outbox;
  std::mutex mutex;  // guards all below
  std::condition_variable ended;
  std::deque<Task> waiting;
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
  tasks_->add({std::move(work), std::move(done)});
  arena_->arena.enqueue([tasks = tasks_] { tasks->run_next(); });
}

}  // namespace vckpt
