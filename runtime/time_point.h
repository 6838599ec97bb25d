// Points and lengths of time as values, for logic that is told the time and never asks for it.
#pragma once

#include <chrono>

namespace vckpt {

// Since an arbitrary start, monotonic.
using TimePoint = std::chrono::time_point<std::chrono::steady_clock, std::chrono::nanoseconds>;
using Duration = std::chrono::nanoseconds;

}  // namespace vckpt
