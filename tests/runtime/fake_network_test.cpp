#include "tests/support/fake_network.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "tests/runtime/channel_contract.h"
#include "tests/support/catch.h"

namespace vckpt::testing {
namespace {

using namespace std::chrono_literals;

constexpr Incarnation first_worker{0xABC000};

Bytes numbered(std::uint64_t number) {
  Bytes frame(sizeof number);
  std::memcpy(frame.data(), &number, sizeof number);
  return frame;
}

std::uint64_t number_of(const Bytes& frame) {
  std::uint64_t number = 0;
  std::memcpy(&number, frame.data(), sizeof number);
  return number;
}

class FakeWorld final : public ChannelWorld {
 public:
  explicit FakeWorld(std::size_t worker_count) {
    coordinator_ = std::move(network_.bind("here")).value();
    for (std::size_t i = 0; i < worker_count; ++i) workers_.push_back(network_.connect("here", incarnation(i)));
  }
  void run(std::function<void()> step) override { step(); }
  bool settle(std::function<bool()> reached) override {
    const TimePoint limit = clock_.now() + 10s;
    // Also asked when nothing happens: an answer may depend on the asking.
    while (!reached() && clock_.now() < limit) clock_.run_for(1ms);
    return reached();
  }
  std::size_t worker_count() const override { return workers_.size(); }
  PeerId peer(std::size_t worker) const override { return worker_peer(incarnation(worker)); }
  Channel& coordinator() override { return *coordinator_; }
  Channel& worker(std::size_t index) override { return *workers_.at(index); }
  void end_worker(std::size_t index) override { workers_.at(index).reset(); }

 private:
  static Incarnation incarnation(std::size_t worker) { return Incarnation{first_worker.value + worker}; }
  VirtualClock clock_;
  FakeNetwork network_{clock_, 1};
  std::unique_ptr<Channel> coordinator_;
  std::vector<std::unique_ptr<Channel>> workers_;
};

TEST_CASE("the simulated network keeps the channel contract", "[channel]") {
  check_channel_contract([](std::size_t worker_count) { return std::make_unique<FakeWorld>(worker_count); });
}

// One worker that sends a number every millisecond to a coordinator that notes when which came.
struct Stream {
  explicit Stream(unsigned seed) : network(clock, seed) {
    bind();
    worker = network.connect("here", first_worker);
    worker->on_frame([](const PeerId&, Bytes) {});
  }
  void bind() {
    auto bound = network.bind("here");
    REQUIRE(bound.has_value());
    coordinator = std::move(bound).value();
    coordinator->on_frame([this](const PeerId&, Bytes frame) { heard.emplace_back(clock.now(), number_of(frame)); });
  }
  void send(std::uint64_t count) {
    for (; count > 0; --count) {
      REQUIRE(worker->send(coordinator_peer, numbered(next++)).has_value());
      clock.run_for(1ms);
    }
  }
  VirtualClock clock;
  FakeNetwork network;
  std::unique_ptr<Channel> coordinator;
  std::unique_ptr<Channel> worker;
  std::vector<std::pair<TimePoint, std::uint64_t>> heard;
  std::uint64_t next = 1;
};

TEST_CASE("simulated faults lose frames, never their order, and one seed gives one history", "[channel]") {
  for (unsigned seed = 1; seed <= 5; ++seed) {
    INFO("seed " << seed);
    Stream stream(seed);
    stream.network.faults = {50ms, 20, 5};
    stream.send(2000);
    stream.network.faults = {};
    stream.send(300);
    stream.clock.run_for(1s);
    CHECK(stream.network.lost_frames() > 0);
    CHECK(stream.heard.size() + stream.network.lost_frames() == 2300);
    const auto not_rising = [](const auto& a, const auto& b) { return a.second >= b.second; };
    CHECK(std::adjacent_find(stream.heard.begin(), stream.heard.end(), not_rising) == stream.heard.end());
    CHECK(stream.heard.back().second == 2300);

    Stream again(seed);
    again.network.faults = {50ms, 20, 5};
    again.send(2000);
    again.network.faults = {};
    again.send(300);
    again.clock.run_for(1s);
    CHECK(again.heard == stream.heard);
  }
}

TEST_CASE("a worker that is cut off is unavailable, and comes again when healed", "[channel]") {
  Stream stream(1);
  stream.send(10);
  stream.network.cut(worker_peer(first_worker));
  CHECK_FALSE(stream.coordinator->send(worker_peer(first_worker), numbered(1)).has_value());
  const auto heard_before = stream.heard.size();
  stream.send(500);
  CHECK(stream.heard.size() == heard_before);
  stream.network.heal(worker_peer(first_worker));
  stream.clock.run_for(1s);
  CHECK(stream.heard.back().second == 510);
  CHECK(stream.coordinator->send(worker_peer(first_worker), numbered(1)).has_value());
}

TEST_CASE("a coordinator's endpoint is its own until it ends, and workers find the next one there", "[channel]") {
  Stream stream(1);
  stream.send(10);
  CHECK(stream.network.bind("here").error().code == Code::unavailable);
  stream.coordinator.reset();
  stream.send(10);
  stream.bind();
  stream.clock.run_for(1s);
  CHECK(stream.heard.back().second == 20);
}

TEST_CASE("frames on their way to a worker that crashes are lost", "[channel]") {
  Stream stream(1);
  stream.send(10);
  stream.network.faults.delay_max = 1s;
  CHECK(stream.coordinator->send(worker_peer(first_worker), numbered(1)).has_value());
  stream.worker.reset();
  stream.clock.run_for(2s);
  CHECK(stream.network.lost_frames() > 0);
  CHECK_FALSE(stream.coordinator->send(worker_peer(first_worker), numbered(2)).has_value());
}

}  // namespace
}  // namespace vckpt::testing
