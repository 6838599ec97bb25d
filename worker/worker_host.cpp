#include "worker/worker_host.h"

#include <unistd.h>

#include <algorithm>
#include <future>
#include <random>
#include <thread>
#include <utility>

#include "runtime/host_address.h"
#include "runtime/host_transport.h"
#include "runtime/local_channel.h"
#include "runtime/posix_storage.h"
#include "runtime/tbb_compute.h"
#include "runtime/zmq_channel.h"
#include "worker/free_memory.h"
#include "worker/route_address.h"
#include "worker/single_process.h"

namespace vckpt {
namespace {

constexpr unsigned compute_threads_max = 4;
constexpr std::uint64_t default_staging_bytes_min = 16 << 20;
constexpr auto end_wait_max = std::chrono::seconds(10);  // for what should end at once, before it is given up

std::uint64_t random_number() {
  std::random_device random;
  return (static_cast<std::uint64_t>(random()) << 32) | random();
}

// Once set, later values are ignored; waited for on another thread.
template <typename T>
class Answer {
 public:
  void set(T value) {
    if (!std::exchange(state_->set, true)) state_->promise.set_value(std::move(value));
  }
  std::optional<T> wait(Duration longest) {
    if (future_.wait_for(longest) != std::future_status::ready) return std::nullopt;
    return future_.get();
  }

 private:
  struct State {
    std::promise<T> promise;
    bool set = false;
  };
  std::shared_ptr<State> state_ = std::make_shared<State>();
  std::shared_future<T> future_ = state_->promise.get_future().share();
};

Result<void> check(const ConnectOptions& options) {
  if (options.world_size == 0) return invalid("world_size is 0");
  if (options.rank >= options.world_size) {
    return invalid("rank " + std::to_string(options.rank) + " of " + std::to_string(options.world_size) + " ranks");
  }
  if (options.root.empty()) return invalid("no root is given");
  if (options.coordinator.empty() && options.world_size != 1) {
    return invalid("no coordinator is given for " + std::to_string(options.world_size) + " ranks");
  }
  if (options.deadline <= std::chrono::milliseconds(0)) return invalid("the deadline is not positive");
  return {};
}

}  // namespace

// In the order in which they are made; destroyed from the last to the first.
struct WorkerHost::Seams {
  std::unique_ptr<Arena> arena;
  std::unique_ptr<PosixStorage> storage;
  std::unique_ptr<TbbCompute> compute;
  std::unique_ptr<HostTransport> transport;
  LocalChannels local;
  std::unique_ptr<ZmqChannel> remote;
  std::unique_ptr<SingleProcess> coordinator;
  bool coordinator_runs = false;
  Answer<bool> coordinator_ended;
  std::unique_ptr<WorkerActor> worker;
};

WorkerHost::WorkerHost(const ConnectOptions& options) : options_(options), actor_("vckpt-worker") {}

Result<std::unique_ptr<WorkerHost>> WorkerHost::open(const ConnectOptions& options) {
  VCKPT_TRY_VOID(check(options));
  std::string tcp_host;
  if (!options.coordinator.empty()) {
    VCKPT_TRY(tcp_host, route_address(options.coordinator));
  }
  std::unique_ptr<WorkerHost> host(new WorkerHost(options));
  Answer<Result<void>> connected;
  host->actor_.call([&] {
    if (const auto made = host->make_seams(tcp_host); !made) return connected.set(made.error());
    host->connect([connected](Result<void> result) mutable { connected.set(std::move(result)); });
  });
  // Every part of joining has its own, shorter limit: finding the run, the coordinator's answer, the other ranks.
  const auto result = connected.wait(5 * options.deadline + end_wait_max);
  if (!result) return internal("connecting did not end");
  if (!*result) return result->error();
  return host;
}

Result<void> WorkerHost::make_seams(const std::string& tcp_host) {
  seams_ = std::make_unique<Seams>();
  Seams& seams = *seams_;
  const Incarnation incarnation{random_number()};
  seams.storage = std::make_unique<PosixStorage>(actor_, options_.root);
  const unsigned threads = std::clamp(std::thread::hardware_concurrency(), 1U, compute_threads_max);
  seams.compute = std::make_unique<TbbCompute>(actor_, static_cast<int>(threads));
  VCKPT_TRY(seams.transport, HostTransport::listen(actor_, {.local = LocalSockets::on, .tcp_host = tcp_host}));
  Channel* channel = nullptr;
  if (options_.coordinator.empty()) {
    seams.local = join_locally(actor_, actor_, incarnation);
    channel = seams.local.worker.get();
  } else {
    VCKPT_TRY(seams.remote, ZmqChannel::connect(actor_, options_.coordinator, incarnation));
    channel = seams.remote.get();
  }
  const std::uint64_t share_bytes = options_.staging_bytes == 0 ? free_memory_bytes() / 2 : 0;
  WorkerSettings settings;
  settings.rank = Rank{options_.rank};
  settings.world_size = options_.world_size;
  settings.incarnation = incarnation;
  settings.host = this_host();
  settings.process = static_cast<std::uint64_t>(::getpid());
  settings.session_name = options_.session;
  settings.root = options_.root;
  settings.coordinator = options_.coordinator;
  settings.transport_address = seams.transport->address();
  settings.staging_bytes = options_.staging_bytes;
  settings.deadline = options_.deadline;
  const auto staging = [this, share_bytes](std::uint32_t ranks_on_host) -> Arena& {
    const auto default_bytes = std::max(share_bytes / ranks_on_host, default_staging_bytes_min);
    seams_->arena = std::make_unique<Arena>(options_.staging_bytes == 0 ? default_bytes : options_.staging_bytes);
    return *seams_->arena;
  };
  seams.worker = std::make_unique<WorkerActor>(
      WorkerSeams{actor_.clock(), *channel, *seams.storage, *seams.transport, *seams.compute, staging}, settings);
  return {};
}

void WorkerHost::connect(std::function<void(Result<void>)> done) {
  const auto join = [this, done] {
    seams_->worker->start(
        [done](const Result<Joined>& joined) { done(joined ? Result<void>() : Result<void>(joined.error())); });
  };
  if (!options_.coordinator.empty()) return join();
  SingleProcess::Options options{options_.run, this_host(), options_.deadline, Nonce{random_number()},
                                 Nonce{random_number()}};
  seams_->coordinator =
      std::make_unique<SingleProcess>(actor_, *seams_->local.coordinator, *seams_->storage, *seams_->compute,
                                      std::move(options), join, [this, done](std::optional<Error> error) {
                                        seams_->coordinator_runs = false;
                                        seams_->coordinator_ended.set(true);
                                        done(error.value_or(aborted("the coordinator was stopped")));
                                      });
  seams_->coordinator_runs = true;
  seams_->coordinator->start();
}

void WorkerHost::post(std::function<void(WorkerActor&)> step) {
  actor_.post([this, step = std::move(step)] { step(*seams_->worker); });
}

Result<void> WorkerHost::close() {
  if (closed_) return {};
  Answer<bool> ended;
  actor_.post([this, ended]() mutable { seams_->worker->close([ended]() mutable { ended.set(true); }); });
  // Every call ends by its own deadlines; their number is bounded.
  while (!ended.wait(std::chrono::seconds(1))) {
  }
  closed_ = true;
  stop_coordinator();
  return {};
}

void WorkerHost::stop_coordinator() {
  std::optional<Answer<bool>> ended;
  actor_.call([&] {
    if (!seams_ || !seams_->coordinator_runs) return;
    ended = seams_->coordinator_ended;
    seams_->coordinator->stop();
  });
  if (ended) ended->wait(end_wait_max);
}

WorkerHost::~WorkerHost() {
  if (!closed_) {
    Answer<bool> left;
    actor_.call([&] {
      if (!seams_ || !seams_->worker) return left.set(true);
      seams_->worker->leave([left]() mutable { left.set(true); });
    });
    left.wait(end_wait_max);
    stop_coordinator();
  }
  actor_.call([this] { destroy_seams(); });
  // Completions that were on their way still hold staging: the arena goes after them.
  actor_.call([this] { seams_.reset(); });
}

void WorkerHost::destroy_seams() {
  if (!seams_) return;
  seams_->worker.reset();
  seams_->coordinator.reset();
  seams_->remote.reset();
  seams_->local = {};
  seams_->transport.reset();
  seams_->compute.reset();
  if (seams_->storage && !seams_->storage->close(end_wait_max)) {
    // A call hangs in the kernel with memory of ours: neither may go.
    static_cast<void>(seams_->storage.release());
    static_cast<void>(seams_->arena.release());
  }
  seams_->storage.reset();
}

}  // namespace vckpt
