#include "runtime/thread_pool.h"

#include <atomic>
#include <future>
#include <vector>

#include "tests/support/catch.h"

using namespace vckpt;
using namespace std::chrono_literals;

TEST_CASE("one thread runs tasks in the order of their submission") {
  std::vector<int> order;
  ThreadPool pool("test", 1, 1000);
  std::promise<void> done;
  for (int i = 0; i < 100; ++i) REQUIRE(pool.submit([&order, i] { order.push_back(i); }));
  REQUIRE(pool.submit([&done] { done.set_value(); }));
  REQUIRE(done.get_future().wait_for(30s) == std::future_status::ready);
  REQUIRE(order.size() == 100);
  for (int i = 0; i < 100; ++i) CHECK(order[static_cast<std::size_t>(i)] == i);
}

TEST_CASE("as many tasks run at once as there are threads") {
  constexpr int threads = 3;
  ThreadPool pool("test", threads, 10);
  std::atomic<int> running = 0;
  std::promise<void> all;
  std::promise<void> release;
  const std::shared_future<void> released = release.get_future().share();
  for (int i = 0; i < threads; ++i) {
    REQUIRE(pool.submit([&, released] {
      if (++running == threads) all.set_value();
      released.wait_for(30s);
    }));
  }
  CHECK(all.get_future().wait_for(30s) == std::future_status::ready);
  release.set_value();
}

TEST_CASE("the queue holds as many tasks as its bound and not one more") {
  ThreadPool pool("test", 0, 3);
  for (int i = 0; i < 3; ++i) CHECK(pool.submit([] {}));
  CHECK_FALSE(pool.submit([] {}));
}

TEST_CASE("closing drops what waits, refuses what comes, and waits for what runs") {
  ThreadPool pool("test", 1, 10);
  std::promise<void> entered;
  std::promise<void> release;
  std::atomic<int> ran = 0;
  const auto held = std::make_shared<int>(1);
  REQUIRE(pool.submit([&, released = release.get_future().share()] {
    entered.set_value();
    released.wait_for(30s);
    ++ran;
  }));
  REQUIRE(entered.get_future().wait_for(30s) == std::future_status::ready);
  REQUIRE(pool.submit([&ran, held] { ++ran; }));

  CHECK_FALSE(pool.close(0ns));
  CHECK(held.use_count() == 1);
  CHECK_FALSE(pool.submit([] {}));
  CHECK(ran == 0);
  release.set_value();
  CHECK(pool.close(30s));
  CHECK(ran == 1);
}
