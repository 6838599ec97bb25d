// Accepts connections from other ranks at a local name, a TCP port, or both.
#pragma once

#include <functional>

#include "runtime/actor.h"
#include "runtime/outbound_stream.h"
#include "runtime/stream_socket.h"

namespace vckpt {

// Threading: one actor's; `accepted` runs on it.
class StreamListener {
 public:
  using Accepted = std::function<void(StreamKind, Descriptor)>;

  StreamListener(Actor& actor, StreamKind kind, Descriptor socket, Accepted accepted);
  ~StreamListener();
  StreamListener(const StreamListener&) = delete;
  StreamListener& operator=(const StreamListener&) = delete;

 private:
  void watch();
  void accept_some();

  Actor& actor_;
  const StreamKind kind_;
  const Descriptor socket_;
  const Accepted accepted_;
  TimerId pause_timer_ = 0;
};

}  // namespace vckpt
