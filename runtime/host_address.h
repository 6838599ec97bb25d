// Names of machines, resolved once at start: event loops see numbers only.
#pragma once

#include <cstdint>
#include <string>

#include "schema/result.h"

namespace vckpt {

struct HostAddress {
  std::string number;  // 127.0.0.1 or ::1
  bool ipv6 = false;
  bool any = false;  // stands for all addresses of this machine
  std::string bracketed() const { return ipv6 ? "[" + number + "]" : number; }
};

// Blocks on the resolver. `*` and the empty name are all addresses. invalid: no such host.
Result<HostAddress> resolve_host(const std::string& host);

// Where a coordinator listens: `tcp://HOST:PORT`, an IPv6 number in brackets, which are taken off.
struct Endpoint {
  std::string host;
  std::uint16_t port = 0;
};

// invalid: not such a text.
Result<Endpoint> parse_endpoint(const std::string& text);

// As the system names this machine.
std::string this_host();

}  // namespace vckpt
