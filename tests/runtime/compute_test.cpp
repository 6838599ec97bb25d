#include <atomic>
#include <future>
#include <stdexcept>

#include "runtime/actor.h"
#include "runtime/tbb_compute.h"
#include "schema/result.h"
#include "tests/support/catch.h"
#include "tests/support/virtual_clock.h"

using namespace vckpt;
using namespace std::chrono_literals;

namespace {

void wait(std::promise<void>& done) { REQUIRE(done.get_future().wait_for(60s) == std::future_status::ready); }

// A TbbCompute that lives on its actor.
struct ComputeActor {
  explicit ComputeActor(int threads) {
    actor.call([this, threads] { compute = std::make_unique<TbbCompute>(actor, threads); });
  }
  ~ComputeActor() {
    actor.call([this] { compute.reset(); });
  }
  ComputeActor(const ComputeActor&) = delete;
  ComputeActor& operator=(const ComputeActor&) = delete;
  Actor actor{"test-compute"};
  std::unique_ptr<TbbCompute> compute;
};

}  // namespace

TEST_CASE("work runs off the actor, what follows runs on it, after the call") {
  ComputeActor test(2);
  std::promise<void> ended;
  bool called = false;
  test.actor.post([&] {
    test.compute->run([&] { CHECK_FALSE(test.actor.on_this_thread()); },
                      [&] {
                        CHECK(test.actor.on_this_thread());
                        CHECK(called);
                        ended.set_value();
                      });
    called = true;
  });
  wait(ended);
}

TEST_CASE("no more work runs at once than the arena has threads") {
  constexpr int threads = 2;
  constexpr int works = 40;
  ComputeActor test(threads);
  std::atomic<int> running = 0;
  std::atomic<int> most = 0;
  std::promise<void> ended;
  int done = 0;
  test.actor.post([&] {
    for (int i = 0; i < works; ++i) {
      test.compute->run(
          [&] {
            const int now = ++running;
            int before = most;
            while (before < now && !most.compare_exchange_weak(before, now)) {
            }
            std::this_thread::yield();
            --running;
          },
          [&] {
            if (++done == works) ended.set_value();
          });
    }
  });
  wait(ended);
  CHECK(most >= 1);
  CHECK(most <= threads);
}

TEST_CASE("work that throws has ended, and nothing else notices") {
  ComputeActor test(1);
  std::promise<void> ended;
  test.actor.post([&] {
    test.compute->run([] { throw std::runtime_error("a bug"); }, [] {});
    test.compute->run([] {}, [&] { ended.set_value(); });
  });
  wait(ended);
}

TEST_CASE("a compute that is destroyed waits for running work and tells nobody") {
  Actor actor("test-compute");
  std::atomic<int> ended = 0;
  int ended_at_destruction = 0;
  int done = 0;
  actor.call([&] {
    std::promise<void> release;
    {
      TbbCompute compute(actor, 1);
      std::promise<void> entered;
      compute.run(
          [&, released = release.get_future().share()] {
            entered.set_value();
            released.wait_for(30s);
            ++ended;
          },
          [&] { ++done; });
      for (int i = 0; i < 10; ++i) compute.run([] {}, [&] { ++done; });
      VCKPT_ASSERT(entered.get_future().wait_for(30s) == std::future_status::ready);
      release.set_value();
    }
    ended_at_destruction = ended;
  });
  actor.call([] {});
  CHECK(ended_at_destruction == 1);
  CHECK(done == 0);
}

TEST_CASE("virtual compute runs work at its own event and what follows at a later one") {
  VirtualClock clock;
  VirtualCompute compute(clock);
  std::vector<std::string> order;
  compute.run([&] { order.emplace_back("work"); }, [&] { order.emplace_back("done"); });
  CHECK(order.empty());
  REQUIRE(clock.run_next());
  CHECK(order == std::vector<std::string>{"work"});
  REQUIRE(clock.run_next());
  CHECK(order == std::vector<std::string>{"work", "done"});
}
