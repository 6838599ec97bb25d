// Several workers of one session, each in a thread of this process, over ZeroMQ to a real coordinator and with the host
// transport between them.
#include <algorithm>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "coordinator/coordinator_actor.h"
#include "runtime/posix_storage.h"
#include "runtime/tbb_compute.h"
#include "runtime/zmq_channel.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_folder.h"
#include "tests/worker/run_world.h"
#include "vckpt/worker.h"

namespace vckpt {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// A coordinator as its program makes it.
class Server {
 public:
  Server(const std::string& root, Duration deadline) : actor_("coordinator") {
    actor_.call([&] {
      storage_ = std::make_unique<PosixStorage>(actor_, root);
      compute_ = std::make_unique<TbbCompute>(actor_, 1);
      auto channel = ZmqChannel::bind(actor_, {});
      VCKPT_ASSERT(channel.has_value());
      channel_ = *std::move(channel);
      CoordinatorOptions options;
      options.settings.deadline = deadline;
      options.settings.nonce = Nonce{11};
      options.run_name = "job";
      options.run_nonce = Nonce{12};
      options.endpoint = channel_->address();
      coordinator_ =
          std::make_unique<CoordinatorActor>(CoordinatorActor::Seams{actor_.clock(), *channel_, *storage_, *compute_},
                                             options, CoordinatorActor::Hooks{{}, [](std::optional<Error>) {}, {}});
      coordinator_->start();
    });
  }
  ~Server() { end(); }
  // As after kill -9, but that its descriptors are closed one after another.
  void end() {
    actor_.call([&] {
      coordinator_.reset();
      channel_.reset();
      compute_.reset();
      storage_.reset();
    });
  }
  std::string address() const { return channel_->address(); }

 private:
  Actor actor_;
  std::unique_ptr<PosixStorage> storage_;
  std::unique_ptr<TbbCompute> compute_;
  std::unique_ptr<ZmqChannel> channel_;
  std::unique_ptr<CoordinatorActor> coordinator_;
};

// Runs `body(rank)` in a thread per rank; the texts that they return, by rank. Empty: all went well.
std::vector<std::string> on_ranks(std::uint32_t count, const std::function<std::string(std::uint32_t)>& body) {
  std::vector<std::string> answers(count);
  std::vector<std::thread> threads;
  for (std::uint32_t rank = 0; rank < count; ++rank) {
    threads.emplace_back([&, rank] { answers[rank] = body(rank); });
  }
  for (auto& thread : threads) thread.join();
  return answers;
}

ConnectOptions options_for(const Server& server, const std::string& root, std::uint32_t rank, std::uint32_t count) {
  ConnectOptions options;
  options.rank = rank;
  options.world_size = count;
  options.coordinator = server.address();
  options.root = root;
  options.staging_bytes = 4 << 20;
  options.deadline = seconds(20);
  return options;
}

std::string save_once(Worker& worker, std::uint64_t step, const State& state) {
  auto saving = worker.save(Step{step}, state);
  if (!saving) return saving.error().message;
  const auto report = saving->wait_committed(seconds(60));
  if (!report) return report.error().message;
  return report->bytes_written == report->unique_bytes ? "" : "some bytes were written twice";
}

TEST_CASE("three ranks save over a real coordinator, two load it", "[job]") {
  const TemporaryFolder folder;
  const std::string root = folder.path().string();
  const Server server(root, seconds(20));
  const auto sources = mixed_ranks(3, 4);
  const auto saved = on_ranks(3, [&](std::uint32_t rank) -> std::string {
    auto worker = Worker::connect(options_for(server, root, rank, 3));
    if (!worker) return worker.error().message;
    const auto failure = save_once(**worker, 10, sources[rank].state);
    const auto closed = (*worker)->close();
    return failure;
  });
  CHECK(saved == std::vector<std::string>(3));
  auto targets = mixed_ranks(2, 4);
  for (auto& target : targets) target.fill(std::byte{0x55});
  const auto loaded = on_ranks(2, [&](std::uint32_t rank) -> std::string {
    auto worker = Worker::connect(options_for(server, root, rank, 2));
    if (!worker) return worker.error().message;
    const auto result = (*worker)->load(newest, targets[rank].state);
    if (!result) return result.error().message;
    if (!*result || (*result)->id.step != Step{10}) return "nothing was loaded";
    return save_once(**worker, 11, targets[rank].state);
  });
  CHECK(loaded == std::vector<std::string>(2));
  for (const auto& target : targets) CHECK(target.differences().empty());
}

TEST_CASE("a rank that leaves in the middle ends the others' calls, by name", "[job]") {
  const TemporaryFolder folder;
  const std::string root = folder.path().string();
  const Server server(root, seconds(3));
  const auto ranks = mixed_ranks(2, 4);
  const auto answers = on_ranks(2, [&](std::uint32_t rank) -> std::string {
    auto worker = Worker::connect(options_for(server, root, rank, 2));
    if (!worker) return worker.error().message;
    if (rank == 1) return "";
    return save_once(**worker, 1, ranks[rank].state);
  });
  CAPTURE(answers[0]);
  CHECK(answers[0].find("rank 1") != std::string::npos);
}

TEST_CASE("a worker may go at any moment of a save", "[job]") {
  constexpr std::uint64_t rows = 1 << 22;
  const TemporaryFolder folder;
  const std::string root = folder.path().string();
  const Server server(root, seconds(20));
  std::vector<std::vector<std::uint32_t>> memories(2, std::vector<std::uint32_t>(rows));
  for (std::uint64_t step = 1; step <= 15; ++step) {
    const auto answers = on_ranks(2, [&](std::uint32_t rank) -> std::string {
      auto options = options_for(server, root, rank, 2);
      options.staging_bytes = 8 * rows;
      auto worker = Worker::connect(options);
      if (!worker) return worker.error().message;
      State state;
      state.section("model").add({"w", DType::u32, {2 * rows}}, Box{{rank * rows}, {rows}}, memories[rank].data());
      const auto saving = (*worker)->save(Step{step}, state);
      return saving ? "" : saving.error().message;  // it goes while copies are digested and written
    });
    for (const auto& answer : answers) {
      CAPTURE(answer);
      CHECK((answer.empty() || answer.find("has left") != std::string::npos));
    }
  }
}

TEST_CASE("a coordinator that dies is an error at the deadline that names it", "[job]") {
  const TemporaryFolder folder;
  const std::string root = folder.path().string();
  Server server(root, seconds(2));
  const std::string address = server.address();
  auto ranks = mixed_ranks(2, 4);
  std::mutex mutex;
  std::size_t connected = 0;
  const auto answers = on_ranks(2, [&](std::uint32_t rank) -> std::string {
    auto options = options_for(server, root, rank, 2);
    options.deadline = seconds(2);
    auto worker = Worker::connect(options);
    if (!worker) return "connect: " + worker.error().message;
    {
      const std::lock_guard lock(mutex);
      if (++connected == 2) server.end();
    }
    const auto saving = (*worker)->save(Step{1}, ranks[rank].state);
    if (!saving) return saving.error().message;
    auto waiting = *saving;
    const auto ended = waiting.wait_committed(seconds(30));
    return ended ? "committed" : ended.error().message;
  });
  for (const auto& answer : answers) {
    CAPTURE(answer);
    CHECK(answer.find("lost the coordinator at " + address) != std::string::npos);
  }
}

}  // namespace
}  // namespace vckpt
