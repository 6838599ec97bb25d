#include "tests/support/raw_peer.h"

#include <poll.h>
#include <sys/socket.h>

#include "schema/digest.h"

namespace vckpt::testing {
namespace {

constexpr int wait_ms_max = 10'000;

bool await(const Descriptor& socket, short events) {
  pollfd entry{socket.number(), events, 0};
  return ::poll(&entry, 1, wait_ms_max) == 1;
}

}  // namespace

RawPeer::RawPeer() {
  auto listening = listen_tcp("127.0.0.1");
  VCKPT_ASSERT(listening.has_value());
  listener_ = std::move(listening).value();
}

std::string RawPeer::address() const { return StreamAddress{"", "127.0.0.1", listener_.port}.text(); }

void RawPeer::dial(const std::string& transport_address) {
  const auto address = parse_stream_address(transport_address);
  VCKPT_ASSERT(address.has_value());
  auto dialed = dial_tcp(address.value().tcp_host, address.value().tcp_port);
  VCKPT_ASSERT(dialed.has_value());
  spoken_ = std::move(dialed).value();
  VCKPT_ASSERT(await(spoken_, POLLOUT) && connection_error(spoken_) == 0);
}

// The transport may close in the midst of it: then the rest is nobody's.
void RawPeer::say(std::span<const std::byte> bytes) {
  while (!bytes.empty() && await(spoken_, POLLOUT)) {
    const auto count = ::send(spoken_.number(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (count <= 0) return;
    bytes = bytes.subspan(static_cast<std::size_t>(count));
  }
}

void RawPeer::say(FrameHeader header, std::span<const std::byte> payload) {
  if (header.kind == FrameKind::data && !header.checked) {
    header.checked = true;
    header.payload_crc = crc32c(payload);
  }
  say(encode(header));
  say(payload);
}

std::optional<Bytes> RawPeer::read(const Descriptor& socket, std::size_t length_bytes) {
  Bytes bytes(length_bytes);
  std::size_t done_bytes = 0;
  while (done_bytes < length_bytes) {
    if (!await(socket, POLLIN)) return std::nullopt;
    const auto count = ::recv(socket.number(), bytes.data() + done_bytes, length_bytes - done_bytes, 0);
    if (count <= 0) return std::nullopt;
    done_bytes += static_cast<std::size_t>(count);
  }
  return bytes;
}

std::optional<Greeting> RawPeer::hear_welcome() {
  const auto bytes = read(spoken_, greeting_bytes);
  if (!bytes) return std::nullopt;
  const auto greeting = decode_greeting(std::span<const std::byte, greeting_bytes>(*bytes));
  return greeting ? std::optional(greeting.value()) : std::nullopt;
}

bool RawPeer::hears_end() {
  std::byte byte{};
  return await(spoken_, POLLIN) && ::recv(spoken_.number(), &byte, 1, 0) <= 0;
}

Greeting RawPeer::accept() {
  VCKPT_ASSERT(await(listener_.socket, POLLIN));
  heard_ = Descriptor(::accept(listener_.socket.number(), nullptr, nullptr));
  const auto bytes = read(heard_, greeting_bytes);
  VCKPT_ASSERT(bytes.has_value());
  const auto greeting = decode_greeting(std::span<const std::byte, greeting_bytes>(*bytes));
  VCKPT_ASSERT(greeting.has_value());
  return greeting.value();
}

void RawPeer::answer(const Greeting& welcome) {
  const auto bytes = encode(welcome);
  VCKPT_ASSERT(::send(heard_.number(), bytes.data(), bytes.size(), MSG_NOSIGNAL) == ssize_t(bytes.size()));
}

std::optional<FrameHeader> RawPeer::hear_frame() {
  const auto bytes = read(heard_, frame_header_bytes);
  if (!bytes) return std::nullopt;
  const auto header = decode_frame_header(std::span<const std::byte, frame_header_bytes>(*bytes));
  return header ? std::optional(header.value()) : std::nullopt;
}

}  // namespace vckpt::testing
