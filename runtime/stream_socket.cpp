#include "runtime/stream_socket.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstring>

namespace vckpt {
namespace {

constexpr int backlog_connections = 4096;
constexpr unsigned tcp_user_timeout_ms = 60'000;  // besides the deadline of every round
constexpr int stream_flags = SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC;

struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t length = 0;
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
};

Result<SocketAddress> abstract_address(const std::string& name) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (name.empty() || name.size() + 1 > sizeof address.sun_path) return invalid("not a socket's name: '" + name + "'");
  std::memcpy(address.sun_path + 1, name.data(), name.size());  // a leading zero: no file, gone with its last user
  SocketAddress result;
  result.length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  std::memcpy(&result.storage, &address, sizeof address);
  return result;
}

Result<SocketAddress> tcp_address(const std::string& host, std::uint16_t port) {
  SocketAddress result;
  sockaddr_in v4{};
  sockaddr_in6 v6{};
  if (::inet_pton(AF_INET, host.c_str(), &v4.sin_addr) == 1) {
    v4.sin_family = AF_INET;
    v4.sin_port = htons(port);
    result.length = sizeof v4;
    std::memcpy(&result.storage, &v4, sizeof v4);
  } else if (::inet_pton(AF_INET6, host.c_str(), &v6.sin6_addr) == 1) {
    v6.sin6_family = AF_INET6;
    v6.sin6_port = htons(port);
    result.length = sizeof v6;
    std::memcpy(&result.storage, &v6, sizeof v6);
  } else {
    return invalid("not a numeric address: '" + host + "'");
  }
  return result;
}

Error system_error(const std::string& what) {
  const int error = errno;
  const std::string message = what + ": " + std::strerror(error);
  if (error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM) return exhausted(message);
  if (error == EADDRNOTAVAIL || error == EACCES) return invalid(message);
  return unavailable(message);
}

Result<Descriptor> listen_at(const SocketAddress& address, const std::string& what) {
  Descriptor socket(::socket(address.get()->sa_family, stream_flags, 0));
  if (!socket || ::bind(socket.number(), address.get(), address.length) != 0 ||
      ::listen(socket.number(), backlog_connections) != 0) {
    return system_error("listen at " + what);
  }
  return socket;
}

}  // namespace

std::string StreamAddress::text() const {
  std::string text;
  if (!unix_name.empty()) text = "unix:" + unix_name;
  if (tcp_host.empty()) return text;
  return text + (text.empty() ? "" : ",") + "tcp:" + tcp_host + ":" + std::to_string(tcp_port);
}

Result<StreamAddress> parse_stream_address(const std::string& text) {
  StreamAddress address;
  std::string rest = text;
  if (rest.starts_with("unix:")) {
    const auto comma = rest.find(',');
    address.unix_name = rest.substr(5, comma == std::string::npos ? comma : comma - 5);
    rest = comma == std::string::npos ? "" : rest.substr(comma + 1);
    VCKPT_TRY_VOID(abstract_address(address.unix_name));
  }
  if (rest.starts_with("tcp:")) {
    const auto colon = rest.rfind(':');
    address.tcp_host = colon < 4 ? "" : rest.substr(4, colon - 4);
    const auto* const last = rest.data() + rest.size();
    const auto [end, error] = std::from_chars(rest.data() + colon + 1, last, address.tcp_port);
    if (error != std::errc{} || end != last) return invalid("not a transport address: '" + text + "'");
    VCKPT_TRY_VOID(tcp_address(address.tcp_host, address.tcp_port));
    rest.clear();
  }
  if (!rest.empty() || address.text() != text || text.empty()) {
    return invalid("not a transport address: '" + text + "'");
  }
  return address;
}

Result<Descriptor> listen_unix(const std::string& name) {
  VCKPT_TRY(const auto address, abstract_address(name));
  return listen_at(address, "local socket " + name);
}

Result<TcpListener> listen_tcp(const std::string& numeric_host) {
  VCKPT_TRY(const auto wanted, tcp_address(numeric_host, 0));
  TcpListener listener;
  VCKPT_TRY(listener.socket, listen_at(wanted, "host " + numeric_host));
  SocketAddress bound;
  bound.length = sizeof bound.storage;
  if (::getsockname(listener.socket.number(), reinterpret_cast<sockaddr*>(&bound.storage), &bound.length) != 0) {
    return system_error("listen at host " + numeric_host);
  }
  sockaddr_in v4{};
  sockaddr_in6 v6{};
  std::memcpy(&v4, &bound.storage, sizeof v4);
  std::memcpy(&v6, &bound.storage, sizeof v6);
  listener.port = ntohs(bound.storage.ss_family == AF_INET ? v4.sin_port : v6.sin6_port);
  return listener;
}

Result<std::optional<Descriptor>> dial_unix(const std::string& name) {
  VCKPT_TRY(const auto address, abstract_address(name));
  Descriptor socket(::socket(AF_UNIX, stream_flags, 0));
  if (!socket) return system_error("dial local socket " + name);
  if (::connect(socket.number(), address.get(), address.length) != 0) {
    if (errno == EAGAIN) return std::optional<Descriptor>();
    return system_error("dial local socket " + name);
  }
  if (!same_user(socket)) return unavailable("dial local socket " + name + ": it belongs to another user");
  return std::optional(std::move(socket));
}

Result<Descriptor> dial_tcp(const std::string& numeric_host, std::uint16_t port) {
  VCKPT_TRY(const auto address, tcp_address(numeric_host, port));
  const std::string what = "dial host " + numeric_host + " port " + std::to_string(port);
  Descriptor socket(::socket(address.get()->sa_family, stream_flags, 0));
  if (!socket) return system_error(what);
  tune_tcp(socket);
  if (::connect(socket.number(), address.get(), address.length) != 0 && errno != EINPROGRESS) {
    return system_error(what);
  }
  return socket;
}

bool refuses_connections(const std::string& numeric_host, std::uint16_t port, std::chrono::milliseconds wait) {
  const auto address = tcp_address(numeric_host, port);
  const Descriptor socket(address ? ::socket(address->get()->sa_family, stream_flags, 0) : -1);
  if (!socket) return false;
  if (::connect(socket.number(), address->get(), address->length) == 0) return false;
  if (errno != EINPROGRESS) return errno == ECONNREFUSED;
  pollfd dialing{socket.number(), POLLOUT, 0};
  return ::poll(&dialing, 1, static_cast<int>(wait.count())) == 1 && connection_error(socket) == ECONNREFUSED;
}

int connection_error(const Descriptor& socket) {
  int error = 0;
  socklen_t length = sizeof error;
  return ::getsockopt(socket.number(), SOL_SOCKET, SO_ERROR, &error, &length) == 0 ? error : errno;
}

bool same_user(const Descriptor& socket) {
  ucred peer{};
  socklen_t length = sizeof peer;
  return ::getsockopt(socket.number(), SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0 && peer.uid == ::geteuid();
}

void tune_tcp(const Descriptor& socket) {
  // A refused option costs speed or an early warning, nothing else.
  const int on = 1;
  static_cast<void>(::setsockopt(socket.number(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on));
  static_cast<void>(::setsockopt(socket.number(), SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on));
  static_cast<void>(
      ::setsockopt(socket.number(), IPPROTO_TCP, TCP_USER_TIMEOUT, &tcp_user_timeout_ms, sizeof tcp_user_timeout_ms));
}

}  // namespace vckpt
