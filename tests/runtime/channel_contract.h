// What every Channel keeps. One suite for all of them.
#pragma once

#include "tests/support/channel_world.h"

namespace vckpt::testing {

// Inside a TEST_CASE.
void check_channel_contract(const MakeChannelWorld& make);

}  // namespace vckpt::testing
