#include "tests/runtime/clock_contract.h"

#include <algorithm>
#include <random>
#include <vector>

#include "tests/support/catch.h"

namespace vckpt {

using namespace std::chrono_literals;

void check_clock_contract(const std::function<std::unique_ptr<ClockFixture>()>& make) {
  const auto fixture = make();
  Clock& clock = fixture->clock();

  SECTION("timers run in the order of their times, equal ones in the order of the calls, none early") {
    std::vector<int> order;
    bool inside = false;
    bool early = false;
    fixture->run(
        [&] {
          const TimePoint start = clock.now();
          for (const int ms : {5, 1, 3, 1, 0, 4}) {
            const TimePoint when = start + std::chrono::milliseconds(ms);
            clock.call_at(when, [&, ms, when] {
              early = early || clock.now() < when;
              order.push_back(ms);
            });
            inside = inside || !order.empty();
          }
        },
        [&] { return order.size() == 6; });
    CHECK(order == std::vector<int>{0, 1, 1, 3, 4, 5});
    CHECK_FALSE(early);
    CHECK_FALSE(inside);
  }

  SECTION("time does not go back") {
    std::vector<TimePoint> times;
    std::function<void()> tick = [&] {
      times.push_back(clock.now());
      if (times.size() < 20) clock.call_at(clock.now() + 50us, tick);
    };
    fixture->run(tick, [&] { return times.size() == 20; });
    CHECK(std::is_sorted(times.begin(), times.end()));
    CHECK(times.back() - times.front() >= 19 * 50us);
  }

  SECTION("a cancelled timer never runs, and cancelling what is over or unknown is nothing") {
    bool cancelled_ran = false;
    bool ended = false;
    fixture->run(
        [&] {
          const TimerId first = clock.call_at(clock.now() + 1ms, [&] { cancelled_ran = true; });
          CHECK(first != 0);
          clock.cancel(first);
          clock.cancel(first);
          clock.cancel(0);
          clock.cancel(first + 1000);
          clock.call_at(clock.now() + 3ms, [&] { ended = true; });
        },
        [&] { return ended; });
    CHECK_FALSE(cancelled_ran);
  }

  SECTION("a timer may cancel another that is due at the same time") {
    bool second_ran = false;
    bool ended = false;
    fixture->run(
        [&] {
          const TimePoint when = clock.now() + 1ms;
          const auto second = std::make_shared<TimerId>(0);
          clock.call_at(when, [&clock, second] { clock.cancel(*second); });
          *second = clock.call_at(when, [&] { second_ran = true; });
          clock.call_at(when + 1ms, [&] { ended = true; });
        },
        [&] { return ended; });
    CHECK_FALSE(second_ran);
  }

  SECTION("a timer may set a timer for a time that is past, which runs next") {
    std::vector<int> order;
    fixture->run(
        [&] {
          clock.call_at(clock.now(), [&] {
            order.push_back(1);
            clock.call_at(clock.now() - 1h, [&] { order.push_back(2); });
            CHECK(order.size() == 1);
          });
        },
        [&] { return order.size() == 2; });
    CHECK(order == std::vector<int>{1, 2});
  }

  SECTION("of many random timers exactly those that were not cancelled run, in order") {
    const auto seed = std::random_device()();
    INFO("seed " << seed);
    std::mt19937_64 random(seed);
    std::vector<TimePoint> ran;
    std::size_t cancelled = 0;
    fixture->run(
        [&] {
          std::vector<TimerId> timers;
          const TimePoint start = clock.now() + 1s / 50;
          for (int i = 0; i < 300; ++i) {
            const TimePoint when = start + std::chrono::microseconds(random() % 5000);
            timers.push_back(clock.call_at(when, [&ran, when] { ran.push_back(when); }));
          }
          for (const TimerId timer : timers) {
            if (random() % 3 != 0) continue;
            clock.cancel(timer);
            ++cancelled;
          }
        },
        [&] { return ran.size() + cancelled >= 300; });
    CHECK(ran.size() + cancelled == 300);
    CHECK(std::is_sorted(ran.begin(), ran.end()));
  }
}

}  // namespace vckpt
