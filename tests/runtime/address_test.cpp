// Addresses as text, and whether anybody listens there.
#include "runtime/host_address.h"
#include "runtime/stream_socket.h"
#include "tests/support/catch.h"

namespace vckpt {
namespace {

TEST_CASE("an endpoint is taken apart, and nothing else is one", "[address]") {
  CHECK(parse_endpoint("tcp://127.0.0.1:80")->host == "127.0.0.1");
  CHECK(parse_endpoint("tcp://127.0.0.1:65535")->port == 65535);
  CHECK(parse_endpoint("tcp://[::1]:80")->host == "::1");
  CHECK(parse_endpoint("tcp://node-7:80")->host == "node-7");
  for (const auto* text : {"", "tcp://", "127.0.0.1:80", "tcp://host", "tcp://:80", "tcp://[]:80", "udp://127.0.0.1:80",
                           "tcp://host:", "tcp://host:65536", "tcp://host:-1", "tcp://host:80x"}) {
    CAPTURE(text);
    CHECK(parse_endpoint(text).error().code == Code::invalid);
  }
}

TEST_CASE("connections are refused where nobody listens, and only there", "[address]") {
  std::uint16_t port = 0;
  {
    const auto listener = listen_tcp("127.0.0.1").value();
    port = listener.port;
    CHECK_FALSE(refuses_connections("127.0.0.1", port, std::chrono::seconds(10)));
  }
  CHECK(refuses_connections("127.0.0.1", port, std::chrono::seconds(10)));
  CHECK_FALSE(refuses_connections("not a number", port, std::chrono::seconds(10)));
}

}  // namespace
}  // namespace vckpt
