// Waiting for what happens on an actor, with a deadline.
#pragma once

#include <chrono>
#include <functional>

#include "runtime/actor.h"

namespace vckpt::testing {

constexpr std::chrono::seconds settle_limit{10};

// Runs `step` on the actor; what it throws (a failed REQUIRE) is thrown here.
void run_on(Actor& actor, const std::function<void()>& step);

// Asks `reached` on the actor again and again until it holds or the limit has passed: its last answer. In between the
// actor works off what it was given; a failing test costs the limit, a passing one next to nothing. What it throws is
// thrown here.
bool settle_on(Actor& actor, const std::function<bool()>& reached);

}  // namespace vckpt::testing
