// The speaking end of a connection between ranks: dials, says hello, waits for welcome, then writes the frames that its
// owner has, straight out of the memory they lie in. What comes back after the welcome can only be the end.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "runtime/actor.h"
#include "runtime/exchange.h"
#include "runtime/stream_socket.h"
#include "runtime/transport_frame.h"

namespace vckpt {

enum class StreamKind : std::uint8_t { local = 1, network = 2 };  // AF_UNIX; TCP, whose payloads carry a CRC

// Threading: one actor's. Events run on it, also from inside start and wake.
class OutboundStream : public std::enable_shared_from_this<OutboundStream> {
 public:
  struct Events {
    std::function<std::optional<OutgoingFrame>()> next;
    std::function<void(const OutgoingFrame&)> moved;    // a part of it was written
    std::function<void(const OutgoingFrame&)> sent;     // all of it
    std::function<void(const std::string& why)> ended;  // once: refused, closed or broken
  };

  OutboundStream(Actor& actor, StreamKind kind, StreamAddress target, const Greeting& hello, Events events);
  ~OutboundStream();
  OutboundStream(const OutboundStream&) = delete;
  OutboundStream& operator=(const OutboundStream&) = delete;

  void start();
  // There may be something to say.
  void wake();
  // No event comes any more, no memory is touched. The connection stands until the stream is destroyed.
  void pause();

 private:
  enum class State : std::uint8_t { idle, dialing, hello, welcome, open, ended };

  void dial();
  void on_events(std::uint32_t ready);
  void say_hello();
  void hear_welcome();
  void write_frames();
  bool write_current();
  void hear_end();
  void end(const std::string& why);
  void watch(std::uint32_t wanted);

  Actor& actor_;
  const StreamKind kind_;
  const StreamAddress target_;
  const Greeting hello_;
  Events events_;
  State state_ = State::idle;
  Descriptor socket_;
  std::uint32_t watched_ = 0;
  TimerId redial_timer_ = 0;

  std::array<std::byte, greeting_bytes> greeting_{};
  std::size_t greeting_done_ = 0;

  std::optional<OutgoingFrame> current_;
  std::array<std::byte, frame_header_bytes> header_{};
  std::uint64_t written_bytes_ = 0;  // of header and payload of the current frame
};

}  // namespace vckpt
