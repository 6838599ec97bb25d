#include <future>

#include "runtime/actor.h"
#include "schema/result.h"
#include "tests/runtime/clock_contract.h"
#include "tests/support/catch.h"
#include "tests/support/virtual_clock.h"

using namespace vckpt;
using namespace std::chrono_literals;

namespace {

class ActorClockFixture final : public ClockFixture {
 public:
  Clock& clock() override { return actor_.clock(); }
  void run(std::function<void()> begin, std::function<bool()> finished) override {
    std::promise<void> done;
    std::function<void()> look = [&] {
      if (finished()) return done.set_value();
      actor_.clock().call_at(actor_.clock().now() + 100us, look);
    };
    actor_.post([&] {
      begin();
      look();
    });
    VCKPT_ASSERT(done.get_future().wait_for(60s) == std::future_status::ready);
  }

 private:
  Actor actor_{"test-clock"};
};

class VirtualClockFixture final : public ClockFixture {
 public:
  Clock& clock() override { return clock_; }
  void run(std::function<void()> begin, std::function<bool()> finished) override {
    begin();
    REQUIRE(clock_.run_until(finished, clock_.now() + 1h));
  }

 private:
  VirtualClock clock_;
};

class ProcessClockFixture final : public ClockFixture {
 public:
  Clock& clock() override { return process_; }
  void run(std::function<void()> begin, std::function<bool()> finished) override {
    begin();
    REQUIRE(clock_.run_until(finished, clock_.now() + 1h));
  }

 private:
  VirtualClock clock_;
  ProcessClock process_{clock_};
};

}  // namespace

TEST_CASE("an actor's clock keeps the clock contract") {
  check_clock_contract([] { return std::make_unique<ActorClockFixture>(); });
}

TEST_CASE("the virtual clock keeps the clock contract") {
  check_clock_contract([] { return std::make_unique<VirtualClockFixture>(); });
}

TEST_CASE("a simulated process's clock keeps the clock contract") {
  check_clock_contract([] { return std::make_unique<ProcessClockFixture>(); });
}

TEST_CASE("virtual time jumps to the next event and stops at the end that was asked for") {
  VirtualClock clock;
  const TimePoint start = clock.now();
  TimePoint ran;
  clock.call_at(start + 24h, [&] { ran = clock.now(); });
  clock.run_for(1h);
  CHECK(clock.now() == start + 1h);
  CHECK(clock.waiting() == 1);
  CHECK(clock.run_next());
  CHECK(ran == start + 24h);
  CHECK_FALSE(clock.run_next());
}

TEST_CASE("a process that ends takes its timers with it and no others") {
  VirtualClock clock;
  int ours = 0;
  int others = 0;
  {
    ProcessClock process(clock);
    process.post([&] { ++ours; });
    process.call_at(clock.now() + 1s, [&] { ++ours; });
    clock.post([&] { ++others; });
    REQUIRE(clock.run_next());
  }
  clock.run_for(1h);
  CHECK(ours == 1);
  CHECK(others == 1);
}
