#include "vckpt/worker.h"

#include <unistd.h>

#include <condition_variable>
#include <exception>
#include <mutex>
#include <utility>

#include "worker/tensor_table.h"
#include "worker/worker_host.h"

namespace vckpt {

// Set on the worker's actor, waited for on any thread; guarded by `mutex`.
struct Save::Shared {
  std::mutex mutex;
  std::condition_variable changed;
  Step step;
  std::optional<CheckpointId> id;
  std::optional<Result<void>> staged;
  std::optional<Result<Report>> ended;

  template <typename Change>
  void change(Change apply) {
    {
      const std::lock_guard lock(mutex);
      apply(*this);
    }
    changed.notify_all();
  }
};

Step Save::step() const { return shared_->step; }

std::optional<CheckpointId> Save::id() const {
  const std::lock_guard lock(shared_->mutex);
  return shared_->id;
}

bool Save::done() const {
  const std::lock_guard lock(shared_->mutex);
  return shared_->ended.has_value();
}

Result<void> Save::wait_staged(std::chrono::milliseconds deadline) {
  std::unique_lock lock(shared_->mutex);
  const bool reached = shared_->changed.wait_for(lock, deadline, [this] { return shared_->staged.has_value(); });
  if (reached) return *shared_->staged;
  return unavailable("save of step " + std::to_string(shared_->step.value) + " is not staged after " +
                     std::to_string(deadline.count()) + " ms; it goes on");
}

Result<Report> Save::wait_committed(std::chrono::milliseconds deadline) {
  std::unique_lock lock(shared_->mutex);
  const bool reached = shared_->changed.wait_for(lock, deadline, [this] { return shared_->ended.has_value(); });
  if (reached) return *shared_->ended;
  return unavailable("save of step " + std::to_string(shared_->step.value) + " is not decided after " +
                     std::to_string(deadline.count()) + " ms; it goes on");
}

struct Worker::Runtime {
  std::unique_ptr<WorkerHost> host;
  WorkerActor::Table table;  // of the call before
  pid_t process = ::getpid();
  bool closed = false;

  // A forked child has the handle, but not the thread behind it.
  Result<void> check() const {
    if (::getpid() != process) return invalid("this worker belongs to process " + std::to_string(process));
    if (closed) return invalid("the worker is closed");
    return {};
  }

  Result<WorkerActor::Table> make_table(const State& state) {
    VCKPT_TRY(auto made, make_tensor_table(state, table.get()));
    table = std::make_shared<const TensorTable>(std::move(made));
    return table;
  }
};

namespace {

// Runs `body`; an exception (there is no memory left) becomes an error.
template <typename Body>
auto without_exceptions(Body body) -> decltype(body()) {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    return exhausted("no memory is left");
  } catch (const std::exception& failure) {
    return internal(failure.what());
  }
}

void apply_items(State& state, const std::vector<Item>& items) {
  for (const auto& item : items) state.section(item.section).item(item.name, item.value, item.scope);
}

}  // namespace

Worker::Worker(std::unique_ptr<Runtime> runtime) : runtime_(std::move(runtime)) {}

Worker::~Worker() {
  if (::getpid() != runtime_->process) static_cast<void>(runtime_.release());  // it is the parent's
}

Result<std::unique_ptr<Worker>> Worker::connect(const ConnectOptions& options) {
  return without_exceptions([&]() -> Result<std::unique_ptr<Worker>> {
    VCKPT_TRY(auto host, WorkerHost::open(options));
    auto runtime = std::make_unique<Runtime>();
    runtime->host = std::move(host);
    return std::unique_ptr<Worker>(new Worker(std::move(runtime)));
  });
}

Result<Save> Worker::save(Step step, const State& state, const SaveOptions& options) {
  return without_exceptions([&]() -> Result<Save> {
    VCKPT_TRY_VOID(runtime_->check());
    auto shared = std::make_shared<Save::Shared>();
    shared->step = step;
    WorkerActor::SaveCallbacks callbacks;
    callbacks.known = [shared](CheckpointId id) { shared->change([&](auto& all) { all.id = id; }); };
    callbacks.released = [shared](Result<void> staged) {
      shared->change([&](auto& all) { all.staged = std::move(staged); });
    };
    callbacks.ended = [shared](Result<Report> report) {
      shared->change([&](auto& all) { all.ended = std::move(report); });
    };
    // A mistake in the state is told to the other ranks too: they would wait for this one.
    auto table = runtime_->make_table(state);
    if (options.meta.size() > meta_bytes_max) {
      table = invalid("meta has " + std::to_string(options.meta.size()) + " bytes; at most " +
                      std::to_string(meta_bytes_max));
    }
    runtime_->host->post([step, table = std::move(table), options, callbacks](WorkerActor& worker) {
      worker.save(step, table, options, callbacks);
    });
    std::unique_lock lock(shared->mutex);
    // Ends by the deadlines of the worker's logic.
    shared->changed.wait(lock, [&] { return shared->staged.has_value(); });
    if (!*shared->staged) return shared->staged->error();
    return Save(shared);
  });
}

Result<std::optional<LoadResult>> Worker::load(const Selector& selector, State& state, const LoadOptions& options) {
  return without_exceptions([&]() -> Result<std::optional<LoadResult>> {
    VCKPT_TRY_VOID(runtime_->check());
    struct Shared {
      std::mutex mutex;
      std::condition_variable changed;
      std::optional<Result<LoadEnd>> end;
    };
    auto shared = std::make_shared<Shared>();
    const auto ended = [shared](Result<LoadEnd> end) {
      {
        const std::lock_guard lock(shared->mutex);
        shared->end = std::move(end);
      }
      shared->changed.notify_all();
    };
    runtime_->host->post([selector, table = runtime_->make_table(state), options, ended](WorkerActor& worker) {
      worker.load(selector, table, options, ended);
    });
    std::unique_lock lock(shared->mutex);
    // Ends by the deadlines of the worker's logic.
    shared->changed.wait(lock, [&] { return shared->end.has_value(); });
    VCKPT_TRY(auto end, std::move(*shared->end));
    if (!end.id) return std::optional<LoadResult>();
    apply_items(state, end.items);
    return std::optional(LoadResult{*end.id, std::move(end.missing), std::move(end.unexpected), std::move(end.meta),
                                    std::move(end.report)});
  });
}

Result<void> Worker::close() {
  return without_exceptions([&]() -> Result<void> {
    if (runtime_->closed) return {};
    VCKPT_TRY_VOID(runtime_->check());
    runtime_->closed = true;
    return runtime_->host->close();
  });
}

}  // namespace vckpt
