#include "tests/support/actor_world.h"

#include <future>
#include <memory>

namespace vckpt::testing {
namespace {

struct Poll {
  Actor& actor;
  const std::function<bool()>& reached;
  TimePoint until;
  std::promise<bool> answer;
};

void ask(const std::shared_ptr<Poll>& poll) {
  const bool reached = poll->reached();
  const TimePoint now = poll->actor.clock().now();
  if (reached || now >= poll->until) {
    poll->answer.set_value(reached);
    return;
  }
  poll->actor.clock().call_at(now + std::chrono::milliseconds(1), [poll] { ask(poll); });
}

}  // namespace

bool settle_on(Actor& actor, const std::function<bool()>& reached) {
  const auto poll = std::make_shared<Poll>(Poll{actor, reached, {}, {}});
  auto answer = poll->answer.get_future();
  actor.post([poll] {
    poll->until = poll->actor.clock().now() + settle_limit;
    ask(poll);
  });
  return answer.get();
}

}  // namespace vckpt::testing
