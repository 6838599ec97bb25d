// Names of machines, resolved once at start: event loops see numbers only.
#pragma once

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

// As the system names this machine.
std::string this_host();

}  // namespace vckpt
