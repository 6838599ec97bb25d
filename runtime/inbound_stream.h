// The listening end of a connection between ranks: hears a hello, says welcome when its owner lets it, then reads
// frames and hands their payload on piece by piece, checked when it came over a network.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <span>

#include "runtime/actor.h"
#include "runtime/outbound_stream.h"
#include "runtime/stream_socket.h"
#include "runtime/transport_frame.h"

namespace vckpt {

// Threading: one actor's. Events run on it.
class InboundStream : public std::enable_shared_from_this<InboundStream> {
 public:
  struct Events {
    std::function<void(const Greeting&)> hello;
    std::function<void(const FrameHeader&)> frame;
    // Payload of that frame; the last piece comes only when the checksum holds.
    std::function<void(const FrameHeader&, std::span<const std::byte>)> bytes;
    // Once, with unavailable (closed, broken) or corrupt (not our protocol, a wrong checksum in the frame given).
    std::function<void(const Error&, const std::optional<FrameHeader>&)> ended;
  };

  // `scratch` holds what was read until it is handed on; any number of streams of one actor may share it.
  InboundStream(Actor& actor, StreamKind kind, Descriptor socket, std::span<std::byte> scratch);
  ~InboundStream();
  InboundStream(const InboundStream&) = delete;
  InboundStream& operator=(const InboundStream&) = delete;

  void start(Events events);
  const std::optional<Greeting>& hello() const { return hello_; }
  // Answers the hello; frames come from now on. False: the connection is broken.
  bool welcome(Rank self, Incarnation incarnation);
  // No event comes any more. The connection stands until the stream is destroyed.
  void pause();

 private:
  enum class State : std::uint8_t { hello, parked, open, ended };

  void on_readable();
  void read_hello();
  bool read_some();
  bool read_header();
  bool read_payload();
  // Read bytes; nothing when there are none now or the stream has ended.
  std::optional<std::size_t> receive(std::span<std::byte> target);
  void end(const Error& error);

  Actor& actor_;
  const StreamKind kind_;
  const Descriptor socket_;
  const std::span<std::byte> scratch_;
  Events events_;
  State state_ = State::hello;
  std::optional<Greeting> hello_;

  std::array<std::byte, greeting_bytes> greeting_{};
  std::array<std::byte, frame_header_bytes> header_{};
  std::size_t head_bytes_ = 0;  // of the greeting or header being read
  std::optional<FrameHeader> frame_;
  std::uint64_t payload_left_bytes_ = 0;
  std::uint32_t crc_ = 0;
};

}  // namespace vckpt
