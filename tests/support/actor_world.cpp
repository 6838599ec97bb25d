#include "tests/support/actor_world.h"

#include <exception>
#include <future>
#include <memory>

namespace vckpt::testing {
namespace {

constexpr int asked_at_once_max = 1000;  // between any two turns of the actor; then by the clock

struct Poll {
  Actor& actor;
  const std::function<bool()>& reached;
  TimePoint until;
  int asked = 0;
  std::promise<bool> answer;
};

void ask(const std::shared_ptr<Poll>& poll) {
  bool reached = false;
  try {
    reached = poll->reached();
  } catch (...) {
    return poll->answer.set_exception(std::current_exception());
  }
  const TimePoint now = poll->actor.clock().now();
  if (reached || now >= poll->until) {
    poll->answer.set_value(reached);
    return;
  }
  if (++poll->asked < asked_at_once_max) return poll->actor.post([poll] { ask(poll); });
  poll->actor.clock().call_at(now + std::chrono::milliseconds(1), [poll] { ask(poll); });
}

}  // namespace

void run_on(Actor& actor, const std::function<void()>& step) {
  std::exception_ptr thrown;
  actor.call([&] {
    try {
      step();
    } catch (...) {
      thrown = std::current_exception();
    }
  });
  if (thrown) std::rethrow_exception(thrown);
}

bool settle_on(Actor& actor, const std::function<bool()>& reached) {
  const auto poll = std::make_shared<Poll>(Poll{actor, reached, {}, 0, {}});
  auto answer = poll->answer.get_future();
  actor.post([poll] {
    poll->until = poll->actor.clock().now() + settle_limit;
    ask(poll);
  });
  return answer.get();
}

}  // namespace vckpt::testing
