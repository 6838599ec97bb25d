// Transport for host memory: AF_UNIX stream sockets inside a host, TCP between hosts, one non-blocking loop for both on
// the owning actor. Each rank dials every peer it shares a round with and speaks on that connection only: readiness,
// data and acknowledgements for this peer in one order, so that no direction ever waits for the other.
// The first failure ends all posted rounds; then cancel, and begin with another generation.
#pragma once

#include <memory>
#include <string>

#include "runtime/actor.h"
#include "runtime/transport.h"

namespace vckpt {

enum class LocalSockets : std::uint8_t { off = 0, on = 1 };

struct HostTransportOptions {
  LocalSockets local = LocalSockets::on;
  // This machine's name or address towards other hosts; empty: not reachable from there. TCP tells a process from its
  // predecessor or another job's, and finds bytes that were damaged; it keeps no attacker out.
  std::string tcp_host;
};

// Threading: made, used and destroyed on `actor`'s thread; `actor` outlives it.
class HostTransport final : public Transport {
 public:
  // invalid: a tcp_host that is not one address of this machine. unavailable, exhausted: no socket to be had.
  static Result<std::unique_ptr<HostTransport>> listen(Actor& actor, const HostTransportOptions& options);
  ~HostTransport() override;
  HostTransport(const HostTransport&) = delete;
  HostTransport& operator=(const HostTransport&) = delete;

  std::string address() const override;
  void begin(Rank self, std::span<const Peer> peers, std::uint32_t generation) override;
  void post(Round round, std::vector<Send> sends, std::vector<Receive> receives, Duration deadline,
            Completion done) override;
  void cancel(Completion done) override;

 private:
  class Loop;
  explicit HostTransport(std::shared_ptr<Loop> loop);
  std::shared_ptr<Loop> loop_;  // shared only with its own tasks on the actor
};

}  // namespace vckpt
