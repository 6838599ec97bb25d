#include <zmq.hpp>

#include "runtime/actor.h"
#include "runtime/local_channel.h"
#include "runtime/zmq_channel.h"
#include "tests/runtime/channel_contract.h"
#include "tests/support/actor_channels.h"
#include "tests/support/actor_world.h"
#include "tests/support/catch.h"

namespace vckpt::testing {
namespace {

Bytes bytes_of(std::string_view text) {
  const auto* data = reinterpret_cast<const std::byte*>(text.data());
  return Bytes(data, data + text.size());
}

std::uint16_t port_of(const std::string& address) {
  return static_cast<std::uint16_t>(std::stoi(address.substr(address.rfind(':') + 1)));
}

// A ROUTER on loopback that counts what it hears.
struct Listening {
  explicit Listening(const ZmqBind& where = {}) {
    actor.call([&] {
      auto bound = ZmqChannel::bind(actor, where);
      VCKPT_ASSERT(bound.has_value());
      channel = std::move(bound).value();
      channel->on_frame([this](const PeerId& peer, Bytes frame) { heard.emplace_back(peer, std::move(frame)); });
    });
  }
  ~Listening() {
    actor.call([this] { channel.reset(); });
  }
  Actor actor{"router"};
  std::unique_ptr<ZmqChannel> channel;
  std::vector<std::pair<PeerId, Bytes>> heard;
};

TEST_CASE("a ZeroMQ channel keeps the contract", "[channel]") { check_channel_contract(make_zmq_world); }
TEST_CASE("a local channel keeps the contract", "[channel]") { check_channel_contract(make_local_world); }

TEST_CASE("a busy port is unavailable and named, a foreign or unknown host is invalid", "[channel]") {
  Listening first;
  const auto port = port_of(first.channel->address());
  first.actor.call([&] {
    const auto busy = ZmqChannel::bind(first.actor, {.host = "localhost", .port = port});
    REQUIRE_FALSE(busy.has_value());
    CHECK(busy.error().code == Code::unavailable);
    CHECK(busy.error().message.find("localhost") != std::string::npos);
    CHECK(busy.error().message.find(std::to_string(port)) != std::string::npos);

    const auto foreign = ZmqChannel::bind(first.actor, {.host = "192.0.2.1"});  // TEST-NET, nobody's
    REQUIRE_FALSE(foreign.has_value());
    CHECK(foreign.error().code == Code::invalid);
    CHECK(foreign.error().message.find("192.0.2.1") != std::string::npos);

    const auto unknown = ZmqChannel::bind(first.actor, {.host = "no such host"});
    REQUIRE_FALSE(unknown.has_value());
    CHECK(unknown.error().code == Code::invalid);
  });
}

TEST_CASE("more workers than open files are refused at the start", "[channel]") {
  Actor actor("router");
  actor.call([&] {
    const auto bound = ZmqChannel::bind(actor, {.peers_max = 0xFFFFFFFF});
    REQUIRE_FALSE(bound.has_value());
    CHECK(bound.error().code == Code::invalid);
    CHECK(bound.error().message.find("4294967295") != std::string::npos);
  });
}

TEST_CASE("an endpoint that is none is invalid", "[channel]") {
  Actor actor("dealer");
  actor.call([&] {
    for (const char* endpoint : {"", "tcp://", "tcp://127.0.0.1", "tcp://127.0.0.1:x", "ipc:///tmp/x", "127.0.0.1:1"}) {
      INFO(endpoint);
      const auto connected = ZmqChannel::connect(actor, endpoint, Incarnation{1});
      REQUIRE_FALSE(connected.has_value());
      CHECK(connected.error().code == Code::invalid);
    }
  });
}

TEST_CASE("frames wait for a coordinator that comes later, up to the bound", "[channel]") {
  std::uint16_t port = 0;
  {
    Listening earlier;
    port = port_of(earlier.channel->address());
  }
  Actor actor("dealer");
  std::unique_ptr<ZmqChannel> worker;
  actor.call([&] {
    auto connected = ZmqChannel::connect(actor, "tcp://127.0.0.1:" + std::to_string(port), Incarnation{5});
    REQUIRE(connected.has_value());
    worker = std::move(connected).value();
    worker->on_frame([](const PeerId&, Bytes) {});
    for (std::size_t i = 0; i < channel_queue_frames_max; ++i) {
      REQUIRE(worker->send(coordinator_peer, bytes_of(std::to_string(i))).has_value());
    }
    const auto one_more = worker->send(coordinator_peer, bytes_of("one more"));
    REQUIRE_FALSE(one_more.has_value());
    CHECK(one_more.error().code == Code::exhausted);
  });
  Listening later({.port = port});
  CHECK(settle_on(later.actor, [&] { return later.heard.size() == channel_queue_frames_max; }));
  later.actor.call([&] {
    for (std::size_t i = 0; i < later.heard.size(); ++i) {
      CHECK(later.heard[i] == std::pair(worker_peer(Incarnation{5}), bytes_of(std::to_string(i))));
    }
  });
  actor.call([&] { worker.reset(); });
}

TEST_CASE("a worker that connects anew is answered there, though its old connection still stands", "[channel]") {
  Listening coordinator;
  zmq::context_t context;
  std::vector<zmq::socket_t> connections;
  for (std::size_t visit = 0; visit < 3; ++visit) {
    auto& socket = connections.emplace_back(context, zmq::socket_type::dealer);
    socket.set(zmq::sockopt::linger, 0);
    socket.set(zmq::sockopt::rcvtimeo, 10'000);
    socket.set(zmq::sockopt::routing_id, worker_peer(Incarnation{9}));
    socket.connect(coordinator.channel->address());
    REQUIRE(socket.send(zmq::str_buffer("here"), zmq::send_flags::none));
    REQUIRE(settle_on(coordinator.actor, [&] { return coordinator.heard.size() == visit + 1; }));
    coordinator.actor.call([&] {
      CHECK(coordinator.channel->send(worker_peer(Incarnation{9}), bytes_of(std::to_string(visit))).has_value());
    });
    zmq::message_t answer;
    REQUIRE(socket.recv(answer));
    CHECK(answer.to_string() == std::to_string(visit));
  }
}

TEST_CASE("malformed messages and peers beyond the bound are refused and counted", "[channel]") {
  Listening coordinator({.peers_max = 2});
  zmq::context_t context;
  std::vector<zmq::socket_t> sockets;
  for (int i = 0; i < 3; ++i) {
    sockets.emplace_back(context, zmq::socket_type::dealer);
    sockets.back().set(zmq::sockopt::linger, 0);
    sockets.back().connect(coordinator.channel->address());
  }
  for (int i = 0; i < 2; ++i) REQUIRE(sockets[std::size_t(i)].send(zmq::str_buffer("first"), zmq::send_flags::none));
  REQUIRE(settle_on(coordinator.actor, [&] { return coordinator.heard.size() == 2; }));

  REQUIRE(sockets[0].send(zmq::message_t(), zmq::send_flags::none));  // empty
  REQUIRE(sockets[0].send(zmq::str_buffer("two"), zmq::send_flags::sndmore));
  REQUIRE(sockets[0].send(zmq::str_buffer("parts"), zmq::send_flags::none));
  REQUIRE(sockets[2].send(zmq::str_buffer("the third peer"), zmq::send_flags::none));
  CHECK(settle_on(coordinator.actor, [&] { return coordinator.channel->frames_refused() == 3; }));
  REQUIRE(sockets[1].send(zmq::str_buffer("second"), zmq::send_flags::none));
  CHECK(settle_on(coordinator.actor, [&] { return coordinator.heard.size() == 3; }));
  coordinator.actor.call([&] { CHECK(coordinator.heard.back().second == bytes_of("second")); });

  // A forgotten peer makes room.
  coordinator.actor.call([&] { coordinator.channel->drop(coordinator.heard.back().first); });
  REQUIRE(sockets[2].send(zmq::str_buffer("now"), zmq::send_flags::none));
  CHECK(settle_on(coordinator.actor, [&] { return coordinator.heard.size() == 4; }));
}

TEST_CASE("a frame above the limit ends the connection, not the coordinator", "[channel]") {
  Listening coordinator;
  zmq::context_t context;
  zmq::socket_t hostile(context, zmq::socket_type::dealer);
  hostile.set(zmq::sockopt::linger, 0);
  hostile.connect(coordinator.channel->address());
  REQUIRE(hostile.send(zmq::message_t(channel_frame_bytes_max + 1), zmq::send_flags::none));
  zmq::socket_t honest(context, zmq::socket_type::dealer);
  honest.set(zmq::sockopt::linger, 0);
  honest.connect(coordinator.channel->address());
  REQUIRE(honest.send(zmq::str_buffer("hello"), zmq::send_flags::none));
  CHECK(settle_on(coordinator.actor, [&] { return !coordinator.heard.empty(); }));
  coordinator.actor.call([&] {
    REQUIRE(coordinator.heard.size() == 1);
    CHECK(coordinator.heard[0].second == bytes_of("hello"));
  });
}

TEST_CASE("a channel may be destroyed by its own handler", "[channel]") {
  Listening coordinator;
  Actor actor("dealer");
  std::unique_ptr<ZmqChannel> worker;
  int heard = 0;
  actor.call([&] {
    auto connected = ZmqChannel::connect(actor, coordinator.channel->address(), Incarnation{3});
    REQUIRE(connected.has_value());
    worker = std::move(connected).value();
    worker->on_frame([&](const PeerId&, Bytes) {
      ++heard;
      worker.reset();
    });
    REQUIRE(worker->send(coordinator_peer, bytes_of("hello")).has_value());
  });
  REQUIRE(settle_on(coordinator.actor, [&] { return coordinator.heard.size() == 1; }));
  coordinator.actor.call([&] {
    CHECK(coordinator.channel->send(worker_peer(Incarnation{3}), bytes_of("answer")).has_value());
    // The worker may be gone by now: what becomes of these does not matter, only that they are not delivered.
    for (int i = 0; i < 3; ++i) {
      static_cast<void>(coordinator.channel->send(worker_peer(Incarnation{3}), bytes_of("more")));
    }
  });
  CHECK(settle_on(actor, [&] { return worker == nullptr; }));
  actor.call([&] { CHECK(heard == 1); });
}

TEST_CASE("local channels join two actors, and frames sent before there is a handler wait", "[channel]") {
  Actor one("coordinator");
  Actor two("worker");
  LocalChannels pair = join_locally(one, two, Incarnation{4});
  std::vector<std::pair<PeerId, Bytes>> heard;
  two.call([&] { CHECK(pair.worker->send(coordinator_peer, bytes_of("early")).has_value()); });
  one.call([&] {
    pair.coordinator->on_frame([&](const PeerId& peer, Bytes frame) {
      CHECK(one.on_this_thread());
      heard.emplace_back(peer, std::move(frame));
    });
  });
  CHECK(settle_on(one, [&] { return heard.size() == 1; }));
  one.call([&] { CHECK(heard.at(0) == std::pair(worker_peer(Incarnation{4}), bytes_of("early"))); });
  two.call([&] { pair.worker.reset(); });
  one.call([&] {
    CHECK_FALSE(pair.coordinator->send(worker_peer(Incarnation{4}), bytes_of("late")).has_value());
    pair.coordinator.reset();
  });
}

}  // namespace
}  // namespace vckpt::testing
