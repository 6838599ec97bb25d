// What every Clock does, as one suite: called from a test case per implementation.
#pragma once

#include <functional>
#include <memory>

#include "runtime/clock.h"

namespace vckpt {

class ClockFixture {
 public:
  virtual ~ClockFixture() = default;
  virtual Clock& clock() = 0;
  // Runs `begin` on the clock's actor and what follows from it, until `finished` says true there; fails the test when
  // that takes unreasonably long.
  virtual void run(std::function<void()> begin, std::function<bool()> finished) = 0;
};

void check_clock_contract(const std::function<std::unique_ptr<ClockFixture>()>& make);

}  // namespace vckpt
