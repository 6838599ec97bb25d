#include "tests/support/memory_transport.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>

#include "tests/runtime/transport_contract.h"
#include "tests/support/catch.h"

namespace vckpt::testing {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t guarded_bytes = 256 << 20;

class MemoryWorld final : public TransportWorld {
 public:
  explicit MemoryWorld(std::size_t rank_count, unsigned seed = 1)
      : guard_(guarded_bytes), network_(clock_, {seed, 1ms, &guard_}) {
    for (std::uint32_t i = 0; i < rank_count; ++i) {
      ranks_.push_back(std::make_unique<MemoryTransport>(network_, clock_));
      peers_.push_back({Rank{i}, "host" + std::to_string(i), ranks_.back()->address(), Incarnation{0xF00D + i}});
    }
  }

  void run(std::function<void()> step) override { step(); }
  bool settle(std::function<bool()> reached) override {
    const TimePoint limit = clock_.now() + 10s;
    while (!reached() && clock_.now() < limit) clock_.run_for(100us);
    return reached();
  }
  std::size_t rank_count() const override { return peers_.size(); }
  std::string host(std::size_t rank) const override { return peers_.at(rank).host; }
  Transport& rank(std::size_t index) override { return *ranks_.at(index); }
  void begin(std::size_t rank, std::uint32_t generation) override {
    ranks_.at(rank)->begin(peers_.at(rank).rank, peers_, generation);
  }
  void end_rank(std::size_t index) override { ranks_.at(index).reset(); }

  std::span<std::byte> memory(std::size_t length_bytes) override { return guard_.allocate(length_bytes); }
  void write(std::span<std::byte> memory, std::span<const std::byte> bytes) override {
    VCKPT_ASSERT(memory.size() == bytes.size());
    const GuardedMemory::Access access(&guard_);
    std::copy(bytes.begin(), bytes.end(), memory.begin());
  }
  Bytes read(std::span<const std::byte> memory) override {
    const GuardedMemory::Access access(&guard_);
    return Bytes(memory.begin(), memory.end());
  }

  MemoryNetwork& network() { return network_; }
  const std::string& address(std::size_t rank) const { return peers_.at(rank).transport_address; }

 private:
  VirtualClock clock_;
  GuardedMemory guard_;
  MemoryNetwork network_;
  std::vector<std::unique_ptr<MemoryTransport>> ranks_;
  std::vector<Peer> peers_;
};

TEST_CASE("the simulated transport keeps the contract over memory that the host must not touch", "[transport]") {
  check_transport_contract([](std::size_t rank_count) { return std::make_unique<MemoryWorld>(rank_count); });
}

// A transfer of three pieces from rank 0 to rank 1.
struct Transfer {
  explicit Transfer(MemoryWorld& world) {
    world.begin(0, 1);
    world.begin(1, 1);
    const auto source = world.memory(600'000);
    const auto target = world.memory(600'000);
    world.rank(0).post(Round{2}, {{Rank{1}, {source}}}, {}, 500ms, [this](Result<void> result) { sent = result; });
    world.rank(1).post(Round{2}, {}, {{Rank{0}, target.size(), {{target.data(), target.size(), 1, 0}}}}, 500ms,
                       [this](Result<void> result) { received = result; });
  }
  std::optional<Result<void>> sent;
  std::optional<Result<void>> received;
};

TEST_CASE("a stalled simulated rank ends rounds at their deadline", "[transport]") {
  MemoryWorld world(2);
  Transfer transfer(world);
  REQUIRE(world.settle([&] { return world.network().moved_bytes() > 0; }));
  world.network().stall(world.address(1));
  REQUIRE(world.settle([&] { return transfer.sent && transfer.received; }));
  REQUIRE_FALSE(transfer.sent->has_value());
  CHECK(transfer.sent->error().code == Code::unavailable);
  CHECK(transfer.sent->error().message.find("rank 1 on host host1") != std::string::npos);
  CHECK_FALSE(transfer.received->has_value());
}

TEST_CASE("a simulated rank that resumes in time is waited for", "[transport]") {
  MemoryWorld world(2);
  world.network().stall(world.address(1));
  Transfer transfer(world);
  int turns = 0;
  world.settle([&] { return ++turns > 4000; });  // 400 ms of 500
  CHECK_FALSE(transfer.sent.has_value());
  world.network().resume(world.address(1));
  REQUIRE(world.settle([&] { return transfer.sent && transfer.received; }));
  CHECK(transfer.sent->has_value());
  CHECK(transfer.received->has_value());
}

TEST_CASE("damaged bytes are corrupt and name the rank that sent them", "[transport]") {
  MemoryWorld world(2);
  Transfer transfer(world);
  world.network().damage_next(world.address(1));
  REQUIRE(world.settle([&] { return transfer.received.has_value(); }));
  CHECK_FALSE(world.network().damage_pending(world.address(1)));
  REQUIRE_FALSE(transfer.received->has_value());
  CHECK(transfer.received->error().code == Code::corrupt);
  CHECK(transfer.received->error().message.find("rank 0 on host host0: round 2") != std::string::npos);
}

TEST_CASE("guarded memory ends a process that touches it outside of an access", "[transport]") {
  GuardedMemory guard(1 << 20);
  const auto memory = guard.allocate(100);
  {
    const GuardedMemory::Access access(&guard);
    memory[0] = std::byte{5};
  }
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    ::signal(SIGSEGV, SIG_DFL);  // not the test framework's report
    const volatile std::byte touched = memory[0];
    ::_exit(touched == std::byte{5} ? 0 : 1);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  const bool ended_well = WIFEXITED(status) && WEXITSTATUS(status) == 0;
  CHECK_FALSE(ended_well);
}

}  // namespace
}  // namespace vckpt::testing
