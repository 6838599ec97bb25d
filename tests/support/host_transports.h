// Transport worlds over the host transport, all ranks on one actor: inside a host, and between hosts.
#pragma once

#include "tests/support/transport_world.h"

namespace vckpt::testing {

std::unique_ptr<TransportWorld> make_unix_world(std::size_t rank_count);
std::unique_ptr<TransportWorld> make_tcp_world(std::size_t rank_count);

}  // namespace vckpt::testing
