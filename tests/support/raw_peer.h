// A rank made of bare sockets, which says whatever a test wants to the host transport.
#pragma once

#include <optional>
#include <span>

#include "runtime/stream_socket.h"
#include "runtime/transport_frame.h"
#include "schema/codec.h"

namespace vckpt::testing {

// Threading: the test's. Every call that waits gives up after some ten seconds.
class RawPeer {
 public:
  RawPeer();
  // Where the transport is told to reach it.
  std::string address() const;

  void dial(const std::string& transport_address);
  void say(std::span<const std::byte> bytes);
  void say(const Greeting& greeting) { say(encode(greeting)); }
  // A frame with a right checksum of `payload`, unless `header` brings one.
  void say(FrameHeader header, std::span<const std::byte> payload = {});
  // What the transport answers to a hello; nothing when it closed the connection instead.
  std::optional<Greeting> hear_welcome();
  void hang_up() { spoken_ = Descriptor(); }
  // The transport closed the connection that this peer dialled.
  bool hears_end();

  // The transport's own connection: accepted, its hello heard and answered by `welcome`.
  Greeting accept();
  void answer(const Greeting& welcome);
  std::optional<FrameHeader> hear_frame();

 private:
  std::optional<Bytes> read(const Descriptor& socket, std::size_t length_bytes);

  TcpListener listener_;
  Descriptor spoken_;
  Descriptor heard_;
};

}  // namespace vckpt::testing
