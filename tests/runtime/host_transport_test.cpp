#include "tests/runtime/transport_contract.h"
#include "tests/support/catch.h"
#include "tests/support/host_transports.h"

namespace vckpt::testing {
namespace {

TEST_CASE("the host transport keeps the contract inside a host", "[transport]") {
  check_transport_contract(make_unix_world);
}
TEST_CASE("the host transport keeps the contract between hosts", "[transport]") {
  check_transport_contract(make_tcp_world);
}

}  // namespace
}  // namespace vckpt::testing
