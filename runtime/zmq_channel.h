// Channel over ZeroMQ: a ROUTER at the coordinator, a DEALER at each worker. The worker's routing id is its
// incarnation, so that an answer to one process never reaches its successor. A connection that breaks loses what was
// queued behind it and is made again without a word; hence the resending above a Channel. Not for forked children: one
// that inherits a channel leaks it, as closing it would hang.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "runtime/actor.h"
#include "runtime/channel.h"

namespace vckpt {

constexpr std::uint64_t channel_queue_bytes_max = std::uint64_t{1} << 30;  // per peer; one frame always fits

struct ZmqBind {
  std::string host = "127.0.0.1";  // a name or an address of this machine; `*`: all of them
  std::uint16_t port = 0;          // 0: any free one
  std::uint32_t peers_max = 0;     // workers at once, the rest is refused; 0: as many as open files allow
};

// Threading: made, used and destroyed on `actor`'s thread; `actor` outlives it.
class ZmqChannel final : public Channel {
 public:
  // The coordinator's side. Raises the limit of open files as far as it may. invalid: a host that is not this machine,
  // a port that needs privileges, more peers than open files. unavailable: a busy port. Errors name host and port.
  static Result<std::unique_ptr<ZmqChannel>> bind(Actor& actor, const ZmqBind& where);

  // A worker's side: `endpoint` as address() gives it. Connects in the background, again and again; frames wait in the
  // queue meanwhile. invalid: not an endpoint.
  static Result<std::unique_ptr<ZmqChannel>> connect(Actor& actor, const std::string& endpoint,
                                                     Incarnation incarnation);

  ~ZmqChannel() override;
  ZmqChannel(const ZmqChannel&) = delete;
  ZmqChannel& operator=(const ZmqChannel&) = delete;

  // tcp://host:port, for others to connect to: bound to all addresses it names this machine.
  const std::string& address() const;

  // Frames thrown away on receipt: malformed ones, and those of peers beyond the bound.
  std::uint64_t frames_refused() const;

  void on_frame(FrameHandler handler) override;
  Result<void> send(const PeerId& peer, Bytes frame) override;
  void drop(const PeerId& peer) override;

 private:
  class Socket;
  explicit ZmqChannel(std::shared_ptr<Socket> socket);
  std::shared_ptr<Socket> socket_;  // shared only with its own tasks on the actor
};

}  // namespace vckpt
