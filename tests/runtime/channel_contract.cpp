#include "tests/runtime/channel_contract.h"

#include <cstring>
#include <map>
#include <random>

#include "tests/support/catch.h"

namespace vckpt::testing {
namespace {

Bytes numbered(std::uint64_t number, std::size_t length_bytes = sizeof(std::uint64_t)) {
  Bytes frame(std::max(length_bytes, sizeof number), static_cast<std::byte>(number * 7 + 1));
  std::memcpy(frame.data(), &number, sizeof number);
  return frame;
}

std::uint64_t number_of(const Bytes& frame) {
  std::uint64_t number = 0;
  std::memcpy(&number, frame.data(), std::min(frame.size(), sizeof number));
  return number;
}

using Log = std::map<PeerId, std::vector<Bytes>>;

// All that both sides hear, by who said it. Shared with the handlers, which may outlive a failing test.
struct Ears {
  Log at_coordinator;
  std::vector<Log> at_workers;
  bool sending = false;
  bool inside_send = false;
};

std::shared_ptr<Ears> listen(ChannelWorld& world) {
  const auto ears = std::make_shared<Ears>();
  ears->at_workers.resize(world.worker_count());
  world.run([&] {
    world.coordinator().on_frame([ears](const PeerId& peer, Bytes frame) {
      ears->inside_send = ears->inside_send || ears->sending;
      ears->at_coordinator[peer].push_back(std::move(frame));
    });
    for (std::size_t i = 0; i < world.worker_count(); ++i) {
      world.worker(i).on_frame([ears, i](const PeerId& peer, Bytes frame) {
        ears->inside_send = ears->inside_send || ears->sending;
        ears->at_workers[i][peer].push_back(std::move(frame));
      });
    }
  });
  return ears;
}

// The coordinator can answer only those it has heard.
void greet(ChannelWorld& world, Ears& ears) {
  world.run([&] {
    for (std::size_t i = 0; i < world.worker_count(); ++i) {
      REQUIRE(world.worker(i).send(coordinator_peer, numbered(i)).has_value());
    }
  });
  REQUIRE(world.settle([&] { return ears.at_coordinator.size() == world.worker_count(); }));
  world.run([&] { ears.at_coordinator.clear(); });
}

void keeps_order(ChannelWorld& world, Ears& ears) {
  constexpr std::size_t frame_count = 300;
  const unsigned seed = 20;
  INFO("seed " << seed);
  std::mt19937 random(seed);
  std::vector<Bytes> frames;
  for (std::size_t i = 0; i < frame_count; ++i) frames.push_back(numbered(i, random() % (i % 10 == 0 ? 100'000 : 300)));
  world.run([&] {
    ears.sending = true;
    for (std::size_t i = 0; i < frame_count; ++i) {
      for (std::size_t worker = 0; worker < world.worker_count(); ++worker) {
        CHECK(world.worker(worker).send(coordinator_peer, frames[i]).has_value());
        CHECK(world.coordinator().send(world.peer(worker), frames[i]).has_value());
      }
    }
    ears.sending = false;
  });
  for (std::size_t worker = 0; worker < world.worker_count(); ++worker) {
    CHECK(world.settle([&] { return ears.at_coordinator[world.peer(worker)].size() >= frame_count; }));
    CHECK(world.settle([&] { return ears.at_workers[worker][coordinator_peer].size() >= frame_count; }));
    world.run([&] {
      CHECK(ears.at_coordinator[world.peer(worker)] == frames);
      CHECK(ears.at_workers[worker][coordinator_peer] == frames);
      CHECK(ears.at_workers[worker].size() == 1);
    });
  }
  CHECK(ears.at_coordinator.size() == world.worker_count());
  CHECK_FALSE(ears.inside_send);
}

// Sends while nobody can receive, until the channel refuses.
void bounds_its_queue(ChannelWorld& world, Ears& ears, Channel& channel, const PeerId& peer, const Log& arrived,
                      const PeerId& from) {
  constexpr std::size_t frame_bytes = 16 << 10;
  constexpr std::size_t network_frames_max = 4096;  // what sockets and their buffers may hold besides
  std::uint64_t accepted = 0;
  world.run([&] {
    Result<void> sent;
    while (accepted < channel_queue_frames_max + network_frames_max) {
      sent = channel.send(peer, numbered(accepted, frame_bytes));
      if (!sent) break;
      ++accepted;
    }
    REQUIRE_FALSE(sent.has_value());
    CHECK(sent.error().code == Code::exhausted);
    CHECK(sent.error().message.find(peer) != std::string::npos);
  });
  CHECK(accepted >= channel_queue_frames_max);
  const auto heard = [&] { return arrived.contains(from) ? arrived.at(from).size() : 0; };
  CHECK(world.settle([&] { return heard() >= accepted; }));
  world.run([&] {
    REQUIRE(heard() == accepted);
    for (std::uint64_t i = 0; i < accepted; ++i) REQUIRE(number_of(arrived.at(from)[i]) == i);
    CHECK(channel.send(peer, numbered(accepted)).has_value());
  });
  CHECK(world.settle([&] { return heard() == accepted + 1; }));
  CHECK_FALSE(ears.inside_send);
}

void bounds_a_frame(ChannelWorld& world, Ears& ears) {
  world.run([&] {
    for (auto* channel : {&world.coordinator(), &world.worker(0)}) {
      const PeerId peer = channel == &world.coordinator() ? world.peer(0) : coordinator_peer;
      const auto large = channel->send(peer, Bytes(channel_frame_bytes_max + 1));
      REQUIRE_FALSE(large.has_value());
      CHECK(large.error().code == Code::invalid);
      const auto empty = channel->send(peer, Bytes());
      REQUIRE_FALSE(empty.has_value());
      CHECK(empty.error().code == Code::invalid);
    }
    CHECK(world.worker(0).send(coordinator_peer, numbered(1, channel_frame_bytes_max)).has_value());
  });
  CHECK(world.settle([&] { return ears.at_coordinator[world.peer(0)].size() == 1; }));
  world.run([&] { CHECK(ears.at_coordinator[world.peer(0)][0] == numbered(1, channel_frame_bytes_max)); });
}

void knows_its_peers(ChannelWorld& world, Ears& ears) {
  world.run([&] {
    const auto sent = world.coordinator().send("nobody", numbered(1));
    REQUIRE_FALSE(sent.has_value());
    CHECK(sent.error().code == Code::unavailable);
    CHECK(sent.error().message.find("nobody") != std::string::npos);
    CHECK_FALSE(world.worker(0).send("nobody", numbered(1)).has_value());
    world.coordinator().drop("nobody");
  });
  world.run([&] { world.end_worker(0); });
  CHECK(world.settle([&] {
    const auto sent = world.coordinator().send(world.peer(0), numbered(2));
    return !sent.has_value() && sent.error().code == Code::unavailable;
  }));
  // The others are not disturbed.
  const std::size_t other = world.worker_count() - 1;
  world.run([&] { CHECK(world.coordinator().send(world.peer(other), numbered(3)).has_value()); });
  CHECK(world.settle([&] { return ears.at_workers[other][coordinator_peer].size() == 1; }));
}

void drops_what_waits(ChannelWorld& world, Ears& ears) {
  constexpr std::uint64_t last = 1'000'000;
  constexpr std::size_t frame_bytes = 16 << 10;
  world.run([&] {
    Result<void> sent;
    std::uint64_t accepted = 0;
    while ((sent = world.worker(0).send(coordinator_peer, numbered(accepted, frame_bytes)))) ++accepted;
    world.worker(0).drop(coordinator_peer);
    CHECK(world.worker(0).send(coordinator_peer, numbered(last)).has_value());
  });
  CHECK(world.settle([&] {
    const auto& arrived = ears.at_coordinator[world.peer(0)];
    return !arrived.empty() && number_of(arrived.back()) == last;
  }));
  world.run([&] {
    const auto& arrived = ears.at_coordinator[world.peer(0)];
    CHECK(arrived.size() > 0);
    std::uint64_t before = 0;
    for (const auto& frame : arrived) {
      CHECK(number_of(frame) >= before);
      before = number_of(frame);
    }
  });
}

}  // namespace

void check_channel_contract(const MakeChannelWorld& make) {
  SECTION("frames arrive whole, in order and once, never from inside send") {
    const auto world = make(3);
    const auto ears = listen(*world);
    greet(*world, *ears);
    keeps_order(*world, *ears);
  }
  SECTION("a full queue is exhausted, and what was accepted still arrives") {
    const auto world = make(1);
    const auto ears = listen(*world);
    greet(*world, *ears);
    Channel* coordinator = nullptr;
    Channel* worker = nullptr;
    world->run([&] { coordinator = &world->coordinator(), worker = &world->worker(0); });
    bounds_its_queue(*world, *ears, *worker, coordinator_peer, ears->at_coordinator, world->peer(0));
    bounds_its_queue(*world, *ears, *coordinator, world->peer(0), ears->at_workers[0], coordinator_peer);
  }
  SECTION("a frame above the limit or empty is invalid, one at the limit arrives") {
    const auto world = make(1);
    const auto ears = listen(*world);
    greet(*world, *ears);
    bounds_a_frame(*world, *ears);
  }
  SECTION("an unknown or ended peer is unavailable, the others are not disturbed") {
    const auto world = make(2);
    const auto ears = listen(*world);
    greet(*world, *ears);
    knows_its_peers(*world, *ears);
  }
  SECTION("a dropped peer's frames are forgotten, later ones arrive") {
    const auto world = make(1);
    const auto ears = listen(*world);
    greet(*world, *ears);
    drops_what_waits(*world, *ears);
  }
}

}  // namespace vckpt::testing
