// What every Transport keeps. One suite for all of them.
#pragma once

#include "tests/support/transport_world.h"

namespace vckpt::testing {

// Inside a TEST_CASE.
void check_transport_contract(const MakeTransportWorld& make);

}  // namespace vckpt::testing
