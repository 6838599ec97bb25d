#include <optional>
#include <random>

#include "runtime/actor.h"
#include "runtime/host_transport.h"
#include "tests/support/actor_world.h"
#include "tests/support/catch.h"
#include "tests/support/raw_peer.h"

namespace vckpt::testing {
namespace {

using namespace std::chrono_literals;

constexpr std::uint32_t generation = 4;
constexpr Incarnation own_incarnation{100};
constexpr Incarnation raw_incarnation{101};

Bytes filled(std::size_t length_bytes, int value = 7) { return Bytes(length_bytes, static_cast<std::byte>(value)); }

// The transport of rank 0, which waits in round 9 for 1000 bytes from rank 1 on host `beta`, a bare socket.
struct Facing {
  Facing() {
    actor.call([this] {
      auto listening = HostTransport::listen(actor, {LocalSockets::off, "127.0.0.1"});
      VCKPT_ASSERT(listening.has_value());
      transport = std::move(listening).value();
      address = transport->address();
    });
  }
  ~Facing() {
    actor.call([this] { transport.reset(); });
  }

  void begin() {
    actor.call([this] {
      const std::vector<Peer> peers = {{Rank{0}, "alpha", address, own_incarnation},
                                       {Rank{1}, "beta", raw.address(), raw_incarnation}};
      transport->begin(Rank{0}, peers, generation);
      transport->post(Round{9}, {}, {{Rank{1}, target.size(), {{target.data(), target.size(), 1, 0}}}}, 20s,
                      [this](Result<void> result) { received = result; });
    });
  }

  Greeting hello() const {
    return {GreetingKind::hello, generation, Rank{1}, Rank{0}, raw_incarnation, own_incarnation};
  }
  void join() {
    begin();
    raw.dial(address);
    raw.say(hello());
    const auto welcome = raw.hear_welcome();
    REQUIRE(welcome.has_value());
    CHECK(*welcome == Greeting{GreetingKind::welcome, generation, Rank{0}, Rank{1}, own_incarnation, raw_incarnation});
  }
  void join_both_ways() {
    join();
    const Greeting heard = raw.accept();
    CHECK(heard == Greeting{GreetingKind::hello, generation, Rank{0}, Rank{1}, own_incarnation, raw_incarnation});
    raw.answer({GreetingKind::welcome, generation, Rank{1}, Rank{0}, raw_incarnation, own_incarnation});
    CHECK(raw.hear_frame() == FrameHeader{FrameKind::ready, generation, Round{9}, 0, target.size(), false, 0});
  }
  FrameHeader data(std::uint64_t offset_bytes, std::uint64_t length_bytes) const {
    return {FrameKind::data, generation, Round{9}, offset_bytes, length_bytes, false, 0};
  }

  void check_failed(Code code, const std::string& part) {
    REQUIRE(settle_on(actor, [this] { return received.has_value(); }));
    REQUIRE_FALSE(received->has_value());
    INFO(received->error().message);
    CHECK(received->error().code == code);
    for (const auto& name : {std::string("rank 1"), std::string("beta"), part}) {
      CHECK(received->error().message.find(name) != std::string::npos);
    }
  }

  Bytes target = Bytes(1000);
  std::optional<Result<void>> received;
  RawPeer raw;
  Actor actor{"transport"};
  std::unique_ptr<HostTransport> transport;
  std::string address;
};

TEST_CASE("an honest bare socket is understood", "[transport]") {
  Facing facing;
  facing.join_both_ways();
  facing.raw.say(facing.data(0, 600), filled(600));
  facing.raw.say(facing.data(600, 400), filled(400));
  CHECK(facing.raw.hear_frame() == FrameHeader{FrameKind::ack, generation, Round{9}, 0, 0, false, 0});
  REQUIRE(settle_on(facing.actor, [&] { return facing.received.has_value(); }));
  CHECK(facing.received->has_value());
  CHECK(facing.target == filled(1000));
}

TEST_CASE("a damaged payload is corrupt and named, and never completes the round", "[transport]") {
  Facing facing;
  facing.join();
  auto header = facing.data(0, 1000);
  header.checked = true;
  header.payload_crc = 12345;
  facing.raw.say(header, filled(1000));
  facing.check_failed(Code::corrupt, "round 9");
}

TEST_CASE("frames of another generation are passed over, and the connection lives on", "[transport]") {
  Facing facing;
  facing.join_both_ways();
  for (const auto kind : {FrameKind::data, FrameKind::ready, FrameKind::ack}) {
    FrameHeader stale{kind, generation - 1, Round{9}, 0, 1000, false, 0};
    facing.raw.say(stale, kind == FrameKind::data ? filled(1000, 99) : Bytes());
  }
  facing.raw.say(facing.data(0, 1000), filled(1000));
  REQUIRE(settle_on(facing.actor, [&] { return facing.received.has_value(); }));
  CHECK(facing.received->has_value());
  CHECK(facing.target == filled(1000));
}

TEST_CASE("a peer that breaks the protocol is corrupt and named", "[transport]") {
  struct Breach {
    const char* what;
    FrameHeader header;
    std::size_t payload_bytes;
  };
  const auto make = [](FrameKind kind, std::uint32_t round, std::uint64_t offset_bytes, std::uint64_t length_bytes) {
    return FrameHeader{kind, generation, Round{round}, offset_bytes, length_bytes, false, 0};
  };
  const std::vector<Breach> breaches = {
      {"not the first byte first", make(FrameKind::data, 9, 1, 10), 10},
      {"more than was asked for", make(FrameKind::data, 9, 0, 1001), 1001},
      {"nothing at all", make(FrameKind::data, 9, 0, 0), 0},
      {"a round that is not posted", make(FrameKind::data, 8, 0, 10), 10},
      {"an ack for nothing", make(FrameKind::ack, 9, 0, 0), 0},
      {"ready for what nobody sends", make(FrameKind::ready, 9, 0, 5), 0},
      {"ready for a round long past", make(FrameKind::ready, 3, 0, 5), 0},
      {"a frame above the limit", make(FrameKind::data, 9, 0, frame_payload_bytes_max + 1), 0},
  };
  for (const Breach& breach : breaches) {
    INFO(breach.what);
    Facing facing;
    facing.join();
    facing.raw.say(breach.header, filled(breach.payload_bytes));
    facing.check_failed(Code::corrupt, "round");
    CHECK(facing.target == Bytes(1000));
  }
}

TEST_CASE("bytes without a checksum are refused between hosts", "[transport]") {
  Facing facing;
  facing.join();
  facing.raw.say(encode(facing.data(0, 1000)));
  facing.check_failed(Code::corrupt, "checksum");
}

TEST_CASE("noise in a joined connection is corrupt", "[transport]") {
  Facing facing;
  facing.join();
  std::mt19937 random(3);
  Bytes noise(5000);
  for (auto& byte : noise) byte = static_cast<std::byte>(random());
  facing.raw.say(noise);
  facing.check_failed(Code::corrupt, "not a frame");
}

TEST_CASE("a peer that ends in the midst of a frame is unavailable and named", "[transport]") {
  Facing facing;
  facing.join();
  facing.raw.say(encode([&] {
    auto header = facing.data(0, 1000);
    header.checked = true;
    return header;
  }()));
  facing.raw.say(filled(400));
  facing.raw.hang_up();
  facing.check_failed(Code::unavailable, "round 9");
}

TEST_CASE("strangers are shown the door and disturb nobody", "[transport]") {
  Facing facing;
  facing.begin();
  const unsigned seed = 11;
  INFO("seed " << seed);
  std::mt19937 random(seed);
  for (int i = 0; i < 50; ++i) {
    RawPeer stranger;
    stranger.dial(facing.address);
    Bytes noise(greeting_bytes + random() % 1000);
    for (auto& byte : noise) byte = static_cast<std::byte>(random());
    stranger.say(noise);
    CHECK(stranger.hears_end());
  }
  std::vector<Greeting> wrong(6, facing.hello());
  wrong[0].kind = GreetingKind::welcome;
  wrong[1].from = Rank{2};
  wrong[2].to = Rank{1};
  wrong[3].from_incarnation = Incarnation{5};
  wrong[4].to_incarnation = Incarnation{5};
  wrong[5].from = Rank{0};
  for (std::size_t i = 0; i < wrong.size(); ++i) {
    INFO("greeting " << i);
    RawPeer impostor;
    impostor.dial(facing.address);
    impostor.say(wrong[i]);
    CHECK_FALSE(impostor.hear_welcome().has_value());
  }
  facing.raw.dial(facing.address);
  facing.raw.say(facing.hello());
  CHECK(facing.raw.hear_welcome().has_value());
  // A second connection in the same name.
  RawPeer twin;
  twin.dial(facing.address);
  twin.say(facing.hello());
  CHECK_FALSE(twin.hear_welcome().has_value());
  facing.actor.call([&] { CHECK_FALSE(facing.received.has_value()); });
}

TEST_CASE("a hello that comes before its exchange waits for it", "[transport]") {
  Facing facing;
  facing.raw.dial(facing.address);
  facing.raw.say(facing.hello());
  facing.begin();
  CHECK(facing.raw.hear_welcome().has_value());
}

TEST_CASE("somebody else at a peer's address is unavailable", "[transport]") {
  Facing facing;
  facing.begin();
  static_cast<void>(facing.raw.accept());
  facing.raw.answer({GreetingKind::welcome, generation, Rank{1}, Rank{0}, Incarnation{77}, own_incarnation});
  facing.check_failed(Code::unavailable, "somebody else");
}

TEST_CASE("every flipped bit of a greeting or a frame header is found", "[transport]") {
  const auto greeting = encode(Greeting{GreetingKind::hello, 1, Rank{2}, Rank{3}, Incarnation{4}, Incarnation{5}});
  for (std::size_t bit = 0; bit < greeting.size() * 8; ++bit) {
    auto flipped = greeting;
    flipped[bit / 8] ^= static_cast<std::byte>(1 << bit % 8);
    CHECK_FALSE(decode_greeting(flipped).has_value());
  }
  const auto header = encode(FrameHeader{FrameKind::data, 1, Round{2}, 3, 4, true, 5});
  for (std::size_t bit = 0; bit < header.size() * 8; ++bit) {
    auto flipped = header;
    flipped[bit / 8] ^= static_cast<std::byte>(1 << bit % 8);
    CHECK_FALSE(decode_frame_header(flipped).has_value());
  }
  CHECK(decode_frame_header(header).value() == FrameHeader{FrameKind::data, 1, Round{2}, 3, 4, true, 5});
}

TEST_CASE("transport addresses are read back as they were written, others are invalid", "[transport]") {
  for (const StreamAddress& address : {StreamAddress{"vckpt-1", "", 0}, StreamAddress{"", "127.0.0.1", 80},
                                       StreamAddress{"a", "::1", 65535}, StreamAddress{"vckpt-1", "10.0.0.1", 1}}) {
    const auto parsed = parse_stream_address(address.text());
    REQUIRE(parsed.has_value());
    CHECK(parsed.value() == address);
  }
  for (const char* text : {"", "unix:", "unix:a,", "tcp:", "tcp:host:1", "tcp:127.0.0.1", "tcp:127.0.0.1:",
                           "tcp:127.0.0.1:65536", "tcp:127.0.0.1:1x", "udp:127.0.0.1:1", "tcp:127.0.0.1:01"}) {
    INFO(text);
    CHECK_FALSE(parse_stream_address(text).has_value());
  }
  CHECK_FALSE(parse_stream_address("unix:" + std::string(200, 'x')).has_value());
}

TEST_CASE("a transport host that is not one address of this machine is invalid", "[transport]") {
  Actor actor("transport");
  actor.call([&] {
    for (const char* host : {"*", "0.0.0.0", "192.0.2.1", "no such host"}) {
      INFO(host);
      const auto listening = HostTransport::listen(actor, {LocalSockets::on, host});
      REQUIRE_FALSE(listening.has_value());
      CHECK(listening.error().code == Code::invalid);
    }
  });
}

}  // namespace
}  // namespace vckpt::testing
