#include "tests/runtime/transport_contract.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "tests/runtime/round_plan.h"
#include "tests/support/catch.h"

namespace vckpt::testing {
namespace {

using namespace std::chrono_literals;

constexpr Duration long_deadline = 30s;
constexpr Duration short_deadline = 200ms;
constexpr std::size_t block_bytes = 100'000;

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

void begin_all(TransportWorld& world, std::uint32_t generation = 1) {
  world.run([&] {
    for (std::size_t i = 0; i < world.rank_count(); ++i) world.begin(i, generation);
  });
}

Bytes filled(std::byte value, std::size_t length_bytes = block_bytes) { return Bytes(length_bytes, value); }

// One transfer of a block between two ranks, and how it ended at both. Wait for both ends before it goes out of scope.
struct Block {
  explicit Block(TransportWorld& owner, std::byte value = std::byte{0x5A}, std::size_t length_bytes = block_bytes)
      : world(owner), source(owner.memory(length_bytes)), target(owner.memory(length_bytes)) {
    world.write(source, filled(value, length_bytes));
  }
  void send(std::size_t from, std::uint32_t to, Round round, Duration deadline = long_deadline) {
    world.rank(from).post(round, {{Rank{to}, {source}}}, {}, deadline, [this](Result<void> result) { sent = result; });
  }
  void receive(std::size_t at, std::uint32_t from, Round round, Duration deadline = long_deadline) {
    world.rank(at).post(round, {}, {{Rank{from}, target.size(), {{target.data(), target.size(), 1, 0}}}}, deadline,
                        [this](Result<void> result) { received = result; });
  }
  TransportWorld& world;
  std::span<std::byte> source;
  std::span<std::byte> target;
  std::optional<Result<void>> sent;
  std::optional<Result<void>> received;
};

void check_failed(const std::optional<Result<void>>& result, Code code, const std::vector<std::string>& parts) {
  REQUIRE(result.has_value());
  REQUIRE_FALSE(result->has_value());
  INFO(result->error().message);
  CHECK(result->error().code == code);
  for (const auto& part : parts) CHECK(contains(result->error().message, part));
}

void moves_random_rounds(const MakeTransportWorld& make, unsigned seed) {
  INFO("seed " << seed);
  std::mt19937 random(seed);
  const auto world = make(2 + seed % 5);
  begin_all(*world);
  std::optional<RoundPlan> plan;
  world->run([&] {
    plan.emplace(*world, random);
    plan->start(1 + random() % 10, long_deadline);
  });
  CHECK(world->settle([&] { return plan->finished(); }));
  world->run([&] { plan->check(); });
}

void waits_for_the_receiver(TransportWorld& world) {
  begin_all(world);
  Block block(world);
  Block other(world, std::byte{1});
  // The receiver is in other rounds with a third rank first.
  world.run([&] { block.send(0, 1, Round{5}); });
  world.run([&] {
    other.send(2, 1, Round{4});
    other.receive(1, 2, Round{4});
  });
  REQUIRE(world.settle([&] { return other.received.has_value() && other.sent.has_value(); }));
  world.run([&] {
    CHECK_FALSE(block.sent.has_value());
    CHECK(world.read(block.target) == filled(std::byte{0}));
    block.receive(1, 0, Round{5});
    CHECK_FALSE(block.received.has_value());
  });
  REQUIRE(world.settle([&] { return block.sent && block.received; }));
  world.run([&] {
    CHECK(block.sent->has_value());
    CHECK(block.received->has_value());
    CHECK(world.read(block.target) == filled(std::byte{0x5A}));
  });
}

void names_the_lost(TransportWorld& world) {
  begin_all(world);
  Block with_lost(world);
  Block from_lost(world);
  world.run([&] {
    with_lost.send(0, 1, Round{3});
    from_lost.receive(2, 1, Round{4});
  });
  // Half way, then gone.
  world.run([&] { world.end_rank(1); });
  REQUIRE(world.settle([&] { return with_lost.sent && from_lost.received; }));
  world.run([&] {
    check_failed(with_lost.sent, Code::unavailable, {"rank 1", world.host(1), "round 3"});
    check_failed(from_lost.received, Code::unavailable, {"rank 1", world.host(1), "round 4"});
  });
  // Later rounds end at once as well, until the next exchange without it.
  Block later(world);
  world.run([&] { later.send(0, 1, Round{6}); });
  REQUIRE(world.settle([&] { return later.sent.has_value(); }));
  world.run([&] {
    check_failed(later.sent, Code::unavailable, {"rank 1"});
    later.sent.reset();
    world.begin(0, 2);
    world.begin(2, 2);
    later.send(0, 2, Round{1});
    later.receive(2, 0, Round{1});
  });
  REQUIRE(world.settle([&] { return later.sent && later.received; }));
  world.run([&] { CHECK(later.received->has_value()); });
}

// Its last acknowledgement is said before it leaves, and must be heard though its connections end.
void lets_ranks_leave(TransportWorld& world) {
  begin_all(world);
  std::optional<Result<void>> sent;
  Block there(world);
  Block back(world);
  world.run([&] {
    const auto target = there.target;
    world.rank(0).post(Round{1}, {{Rank{1}, {there.source}}},
                       {{Rank{1}, block_bytes, {{back.target.data(), block_bytes, 1, 0}}}}, long_deadline,
                       [&](Result<void> result) { sent = result; });
    world.rank(1).post(Round{1}, {{Rank{0}, {back.source}}},
                       {{Rank{0}, block_bytes, {{target.data(), block_bytes, 1, 0}}}}, long_deadline,
                       [&](Result<void> result) {
                         there.received = result;
                         world.end_rank(1);
                       });
  });
  REQUIRE(world.settle([&] { return sent && there.received; }));
  world.run([&] {
    CHECK(there.received->has_value());
    if (!sent->has_value()) FAIL(sent->error().message);
    CHECK(world.read(back.target) == filled(std::byte{0x5A}));
    CHECK(world.read(there.target) == filled(std::byte{0x5A}));
  });
}

void ends_when_nothing_moves(TransportWorld& world) {
  begin_all(world);
  Block block(world);
  Block mute(world);
  world.run([&] {
    block.send(0, 1, Round{7}, short_deadline);
    mute.receive(2, 1, Round{8}, short_deadline);
  });
  REQUIRE(world.settle([&] { return block.sent && mute.received; }));
  world.run([&] {
    check_failed(block.sent, Code::unavailable, {"rank 1", world.host(1), "round 7", "200 ms"});
    check_failed(mute.received, Code::unavailable, {"rank 1", world.host(1), "round 8", "200 ms"});
  });
}

void rounds_wait_for_lower_ones(TransportWorld& world) {
  begin_all(world);
  Block last(world);
  Block first(world);
  world.run([&] {
    first.send(0, 1, Round{1}, long_deadline);
    last.send(0, 1, Round{2}, long_deadline);
    first.receive(1, 0, Round{1}, long_deadline);
  });
  REQUIRE(world.settle([&] { return first.sent && first.received; }));
  world.run([&] {
    CHECK(first.sent->has_value());
    CHECK_FALSE(last.sent.has_value());
    last.receive(1, 0, Round{2}, long_deadline);
  });
  REQUIRE(world.settle([&] { return last.sent && last.received; }));
  world.run([&] {
    CHECK(last.sent->has_value());
    CHECK(last.received->has_value());
  });
}

void cancels(TransportWorld& world) {
  constexpr std::size_t large_bytes = 8 << 20;  // does not get through in one go
  begin_all(world);
  Block block(world, std::byte{0x77}, large_bytes);
  bool cancelled = false;
  bool posted = false;
  bool asked = false;
  const auto cancel_once_begun = [&] {
    if (!std::exchange(posted, true)) {
      block.send(0, 1, Round{1});
      block.receive(1, 0, Round{1});
    }
    if (asked || world.read(block.target.first(1)) == filled(std::byte{0}, 1)) return cancelled;
    asked = true;
    REQUIRE_FALSE(block.received.has_value());
    world.rank(1).cancel([&](Result<void> result) {
      CHECK(result.has_value());
      CHECK(block.received.has_value());
      cancelled = true;
    });
    CHECK_FALSE(cancelled);
    return false;
  };
  REQUIRE(world.settle(cancel_once_begun));
  world.run([&] {
    check_failed(block.received, Code::aborted, {});
    world.write(block.target, filled(std::byte{0x11}, large_bytes));
    block.sent.reset();
    world.rank(0).cancel([&](Result<void>) { cancelled = false; });
  });
  REQUIRE(world.settle([&] { return !cancelled; }));
  Block next(world);
  world.run([&] {
    world.begin(0, 2);
    next.send(0, 1, Round{1});
  });
  world.run([&] {
    world.begin(1, 2);
    next.receive(1, 0, Round{1});
  });
  REQUIRE(world.settle([&] { return next.sent && next.received; }));
  world.run([&] {
    CHECK(next.received->has_value());
    CHECK(world.read(next.target) == filled(std::byte{0x5A}));
    CHECK(world.read(block.target) == filled(std::byte{0x11}, large_bytes));
  });
}

void keeps_generations_apart(TransportWorld& world) {
  Block block(world);
  world.run([&] {
    world.begin(0, 1);
    world.begin(1, 2);
    block.send(0, 1, Round{1}, short_deadline);
    block.receive(1, 0, Round{1}, short_deadline);
  });
  REQUIRE(world.settle([&] { return block.sent && block.received; }));
  world.run([&] {
    CHECK_FALSE(block.sent->has_value());
    CHECK_FALSE(block.received->has_value());
    CHECK(world.read(block.target) == filled(std::byte{0}));
  });
}

void finds_lengths_that_differ(TransportWorld& world) {
  begin_all(world);
  Block block(world);
  std::optional<Result<void>> received;
  world.run([&] {
    block.send(0, 1, Round{2});
    world.rank(1).post(Round{2}, {}, {{Rank{0}, 10, {{block.target.data(), 10, 1, 0}}}}, long_deadline,
                       [&](Result<void> result) { received = result; });
  });
  REQUIRE(world.settle([&] { return block.sent.has_value(); }));
  world.run([&] {
    check_failed(block.sent, Code::corrupt, {"rank 1", world.host(1), "round 2", "10 bytes"});
    world.rank(1).cancel([](Result<void>) {});  // it hears nothing of this from the sender
  });
  REQUIRE(world.settle([&] { return received.has_value(); }));
  world.run([&] { CHECK(world.read(block.target) == filled(std::byte{0})); });
}

void refuses_what_cannot_be(TransportWorld& world) {
  std::vector<std::optional<Result<void>>> results(6);
  const auto note = [&](std::size_t index) { return [&, index](Result<void> result) { results[index] = result; }; };
  Block block(world);
  world.run([&] { world.rank(0).post(Round{1}, {{Rank{1}, {block.source}}}, {}, long_deadline, note(0)); });
  begin_all(world);
  world.run([&] {
    auto& rank = world.rank(0);
    rank.post(Round{5}, {}, {}, long_deadline, note(1));
    rank.post(Round{5}, {{Rank{1}, {block.source}}}, {}, long_deadline, note(2));
    rank.post(Round{6}, {{Rank{0}, {block.source}}}, {}, long_deadline, note(3));
    rank.post(Round{7}, {{Rank{99}, {block.source}}}, {}, long_deadline, note(4));
    rank.post(Round{8}, {}, {{Rank{1}, 10, {{block.target.data(), 9, 1, 0}}}}, long_deadline, note(5));
    CHECK_FALSE(results[1].has_value());
  });
  const auto ended = [](const std::optional<Result<void>>& result) { return result.has_value(); };
  REQUIRE(world.settle([&] { return std::all_of(results.begin(), results.end(), ended); }));
  world.run([&] {
    CHECK(results[1]->has_value());  // takes part in nothing
    for (const std::size_t index : {0, 2, 3, 4, 5}) check_failed(results[index], Code::internal, {"round"});
  });
}

}  // namespace

void check_transport_contract(const MakeTransportWorld& make) {
  SECTION("random rounds arrive byte for byte, posted ahead or one by one") {
    for (unsigned seed = 1; seed <= 6; ++seed) moves_random_rounds(make, seed);
  }
  SECTION("a sender waits for a receiver that posts late") { waits_for_the_receiver(*make(3)); }
  SECTION("a rank that is gone is unavailable, named with its host and the round") { names_the_lost(*make(3)); }
  SECTION("a rank that has done its part may leave at once") {
    for (int i = 0; i < 10; ++i) lets_ranks_leave(*make(2));
  }
  SECTION("a round that does not move ends at its deadline and names who is waited for") {
    ends_when_nothing_moves(*make(3));
  }
  SECTION("rounds posted ahead wait for the lower ones") { rounds_wait_for_lower_ones(*make(2)); }
  SECTION("a cancelled transport touches no memory, and goes on in the next generation") { cancels(*make(2)); }
  SECTION("frames of another generation are dropped") { keeps_generations_apart(*make(2)); }
  SECTION("lengths that differ are corrupt") { finds_lengths_that_differ(*make(2)); }
  SECTION("rounds that cannot be posted end as internal") { refuses_what_cannot_be(*make(2)); }
}

}  // namespace vckpt::testing
