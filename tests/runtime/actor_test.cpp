#include "runtime/actor.h"

#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <future>
#include <thread>
#include <vector>

#include "schema/result.h"
#include "tests/support/catch.h"

using namespace vckpt;
using namespace std::chrono_literals;

namespace {

// A pipe whose ends are closed when the test ends.
struct Pipe {
  Pipe() { VCKPT_ASSERT(::pipe(ends.data()) == 0); }
  ~Pipe() {
    for (const int end : ends) ::close(end);
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  void write() const { VCKPT_ASSERT(::write(ends[1], "x", 1) == 1); }
  void read() const {
    char byte = 0;
    VCKPT_ASSERT(::read(ends[0], &byte, 1) == 1);
  }
  std::array<int, 2> ends{};
};

void wait(std::promise<void>& done) { REQUIRE(done.get_future().wait_for(30s) == std::future_status::ready); }

}  // namespace

TEST_CASE("tasks run on the actor's thread in the order of their posting") {
  Actor actor("test");
  std::vector<int> order;
  bool elsewhere = false;
  for (int i = 0; i < 1000; ++i) {
    actor.post([&, i] {
      order.push_back(i);
      elsewhere = elsewhere || !actor.on_this_thread();
    });
  }
  actor.call([] {});
  REQUIRE(order.size() == 1000);
  CHECK(std::is_sorted(order.begin(), order.end()));
  CHECK_FALSE(elsewhere);
  CHECK_FALSE(actor.on_this_thread());
}

TEST_CASE("many threads may post to one actor and nothing is lost") {
  Actor actor("test");
  int count = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 2000; ++i) actor.post([&] { ++count; });
    });
  }
  for (auto& thread : threads) thread.join();
  actor.call([] {});
  CHECK(count == 8000);
}

TEST_CASE("what was posted before the end still runs") {
  int count = 0;
  std::promise<void> release;
  {
    Actor actor("test");
    actor.post([released = release.get_future().share()] { released.wait_for(30s); });
    for (int i = 0; i < 100; ++i) actor.post([&] { ++count; });
    release.set_value();
  }
  CHECK(count == 100);
}

TEST_CASE("what a dropped or finished task holds is let go") {
  const auto held = std::make_shared<int>(7);
  {
    Actor actor("test");
    actor.post([held] {});
    actor.call([&actor, held] { actor.clock().call_at(actor.clock().now() + 1h, [held] {}); });
  }
  CHECK(held.use_count() == 1);
}

TEST_CASE("a watched descriptor is reported while it is ready, until it is unwatched") {
  Actor actor("test");
  const Pipe pipe;
  std::promise<void> done;
  int calls = 0;
  actor.call([&] {
    actor.watch(pipe.ends[0], EPOLLIN, [&](std::uint32_t events) {
      CHECK((events & EPOLLIN) != 0);
      // Level triggered: the second call comes although nothing new was written.
      if (++calls < 2) return;
      pipe.read();
      actor.unwatch(pipe.ends[0]);
      done.set_value();
    });
  });
  pipe.write();
  wait(done);
  pipe.write();
  actor.call([] {});
  actor.call([] {});
  CHECK(calls == 2);
}

TEST_CASE("a handler may unwatch another descriptor that is ready in the same turn") {
  Actor actor("test");
  const Pipe a;
  const Pipe b;
  int calls = 0;
  actor.call([&] {
    // Both become ready before the actor polls again.
    a.write();
    b.write();
    const auto either = [&](std::uint32_t) {
      ++calls;
      actor.unwatch(a.ends[0]);
      actor.unwatch(b.ends[0]);
    };
    actor.watch(a.ends[0], EPOLLIN, either);
    actor.watch(b.ends[0], EPOLLIN, either);
  });
  actor.call([] {});
  actor.call([] {});
  CHECK(calls == 1);
}

TEST_CASE("a watch may be replaced from inside its own handler") {
  Actor actor("test");
  const Pipe pipe;
  std::promise<void> done;
  actor.call([&] {
    pipe.write();
    actor.watch(pipe.ends[0], EPOLLIN, [&](std::uint32_t) {
      actor.watch(pipe.ends[0], EPOLLIN, [&](std::uint32_t) {
        actor.unwatch(pipe.ends[0]);
        done.set_value();
      });
    });
  });
  wait(done);
}

TEST_CASE("an actor whose timers set new timers still runs its tasks") {
  Actor actor("test");
  std::function<void()> again = [&] { actor.clock().call_at(actor.clock().now(), again); };
  actor.call(again);
  std::promise<void> done;
  actor.post([&] { done.set_value(); });
  wait(done);
}
