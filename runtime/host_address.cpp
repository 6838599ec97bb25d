#include "runtime/host_address.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <memory>
#include <string_view>

namespace vckpt {

Result<HostAddress> resolve_host(const std::string& host) {
  if (host.empty() || host == "*") return HostAddress{"0.0.0.0", false, true};
  const std::string bare =
      host.size() > 2 && host.front() == '[' && host.back() == ']' ? host.substr(1, host.size() - 2) : host;
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (const int error = ::getaddrinfo(bare.c_str(), nullptr, &hints, &found); error != 0) {
    return invalid("host '" + host + "': " + ::gai_strerror(error));
  }
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> list(found, ::freeaddrinfo);
  const addrinfo* chosen = found;
  for (const addrinfo* entry = found; entry != nullptr; entry = entry->ai_next) {
    if (entry->ai_family != AF_INET) continue;
    chosen = entry;
    break;
  }
  std::array<char, NI_MAXHOST> number{};
  if (::getnameinfo(chosen->ai_addr, chosen->ai_addrlen, number.data(), number.size(), nullptr, 0, NI_NUMERICHOST) !=
      0) {
    return invalid("host '" + host + "' has no numeric address");
  }
  HostAddress address{number.data(), chosen->ai_family == AF_INET6, false};
  address.any = address.number == "0.0.0.0" || address.number == "::";
  return address;
}

Result<Endpoint> parse_endpoint(const std::string& text) {
  constexpr std::string_view scheme = "tcp://";
  const Error error = invalid("'" + text + "' is not an address of the form tcp://host:port");
  const auto colon = text.rfind(':');
  if (!text.starts_with(scheme) || colon == std::string::npos || colon <= scheme.size()) return error;
  Endpoint endpoint;
  endpoint.host = text.substr(scheme.size(), colon - scheme.size());
  if (endpoint.host.front() == '[' && endpoint.host.back() == ']') {
    endpoint.host = endpoint.host.substr(1, endpoint.host.size() - 2);
  }
  const auto* end = text.data() + text.size();
  const auto [stop, failed] = std::from_chars(text.data() + colon + 1, end, endpoint.port);
  if (failed != std::errc{} || stop != end || endpoint.host.empty()) return error;
  return endpoint;
}

std::string this_host() {
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0) return "localhost";
  return name.data();
}

}  // namespace vckpt
