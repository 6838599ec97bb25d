// This machine's address as seen from where a coordinator is: what peers on other hosts can dial.
#pragma once

#include <string>

#include "schema/result.h"

namespace vckpt {

// The numeric local address of the route to `endpoint` (tcp://host:port); empty when that is this machine's loopback.
// invalid: not an endpoint, or no such host. Sends nothing; blocks on the resolver.
Result<std::string> route_address(const std::string& endpoint);

}  // namespace vckpt
