// Stream sockets between ranks: AF_UNIX inside a host (abstract names, the peer's uid is checked), TCP between hosts.
// All are non-blocking and closed on exec.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "runtime/descriptor.h"
#include "schema/result.h"

namespace vckpt {

// Where a rank is reached, as it travels in Join: `unix:NAME`, `tcp:NUMBER:PORT`, or both with a comma.
struct StreamAddress {
  std::string unix_name;  // of an abstract socket; empty: none
  std::string tcp_host;   // numeric; empty: none
  std::uint16_t tcp_port = 0;
  bool operator==(const StreamAddress&) const = default;
  std::string text() const;
};

// invalid: not such a text.
Result<StreamAddress> parse_stream_address(const std::string& text);

Result<Descriptor> listen_unix(const std::string& name);
// `host` is numeric; `port` is set to the one chosen by the system.
struct TcpListener {
  Descriptor socket;
  std::uint16_t port = 0;
};
Result<TcpListener> listen_tcp(const std::string& numeric_host);

// A connection in the making: writable once it stands or failed (connection_error). unavailable: refused at once.
// Nothing: the listener is busy, ask again later.
Result<std::optional<Descriptor>> dial_unix(const std::string& name);
Result<Descriptor> dial_tcp(const std::string& numeric_host, std::uint16_t port);

// Whether that machine says that nobody listens there. No, when it says anything else, or nothing in `wait`. Blocks.
bool refuses_connections(const std::string& numeric_host, std::uint16_t port, std::chrono::milliseconds wait);

// 0, or the errno with which connecting failed.
int connection_error(const Descriptor& socket);

// Whether the other side of an AF_UNIX connection runs under our uid.
bool same_user(const Descriptor& socket);

void tune_tcp(const Descriptor& socket);

}  // namespace vckpt
