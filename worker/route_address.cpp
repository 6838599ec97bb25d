#include "worker/route_address.h"

#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <memory>

#include "runtime/host_address.h"

namespace vckpt {

Result<std::string> route_address(const std::string& endpoint) {
  const auto parsed = parse_endpoint(endpoint);
  if (!parsed) return parsed.error().with_context("coordinator");
  addrinfo hints{};
  hints.ai_socktype = SOCK_DGRAM;
  addrinfo* found = nullptr;
  if (const int error = ::getaddrinfo(parsed->host.c_str(), std::to_string(parsed->port).c_str(), &hints, &found);
      error != 0) {
    return invalid("coordinator '" + endpoint + "': " + ::gai_strerror(error));
  }
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owned(found, ::freeaddrinfo);
  const int socket = ::socket(found->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (socket < 0) return unavailable("no socket to look for the route to '" + endpoint + "'");
  sockaddr_storage local{};
  socklen_t length = sizeof local;
  char number[NI_MAXHOST] = {};
  // Connecting a datagram socket picks the route, and sends nothing.
  const bool routed = ::connect(socket, found->ai_addr, found->ai_addrlen) == 0 &&
                      ::getsockname(socket, reinterpret_cast<sockaddr*>(&local), &length) == 0 &&
                      ::getnameinfo(reinterpret_cast<sockaddr*>(&local), length, number, sizeof number, nullptr, 0,
                                    NI_NUMERICHOST) == 0;
  ::close(socket);
  if (!routed) return unavailable("no route to coordinator '" + endpoint + "'");
  const std::string address = number;
  if (address.starts_with("127.") || address == "::1") return std::string();
  return address;
}

}  // namespace vckpt
