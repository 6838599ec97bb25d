// Transport between simulated processes on virtual time, over the same rules as the host transport
// (runtime/exchange.h). Pieces of data travel with random delays, in order per pair; peers are lost, stalled or damage
// bytes as a test says. With guarded memory, nothing but the copies of the transport itself touches slices and targets.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "runtime/exchange.h"
#include "schema/codec.h"
#include "tests/support/guarded_memory.h"
#include "tests/support/virtual_clock.h"

namespace vckpt {

class MemoryTransport;

struct MemoryNetworkOptions {
  unsigned seed = 1;
  Duration delay_max = std::chrono::milliseconds(1);
  GuardedMemory* guard = nullptr;  // where slices and targets lie
};

// Outlives its transports. Ends are known by address(), as in Peer.
class MemoryNetwork {
 public:
  explicit MemoryNetwork(VirtualClock& clock, MemoryNetworkOptions options = {})
      : clock_(clock), options_(options), random_(options.seed) {}
  MemoryNetwork(const MemoryNetwork&) = delete;
  MemoryNetwork& operator=(const MemoryNetwork&) = delete;

  // Nothing reaches this end or comes from it any more, until resume.
  void stall(const std::string& address);
  void resume(const std::string& address);
  // The next piece of data to this end arrives damaged; false once it did.
  void damage_next(const std::string& address) { damaged_.insert(address); }
  bool damage_pending(const std::string& address) const { return damaged_.contains(address); }

  std::uint64_t moved_bytes() const { return moved_bytes_; }

 private:
  friend class MemoryTransport;

  struct Frame {
    std::string source;  // addresses
    std::string target;
    Rank from;
    Incarnation from_incarnation;
    std::uint32_t generation = 0;
    OutgoingFrame said;  // its payload is `payload`
    Bytes payload;
    bool farewell = false;  // the source is gone
  };

  std::string join(MemoryTransport& transport);
  void leave(const std::string& address);
  bool reaches(const std::string& address) const { return ends_.contains(address); }
  void carry(Frame frame);
  void arrive(std::shared_ptr<Frame> frame);

  VirtualClock& clock_;
  const MemoryNetworkOptions options_;
  std::mt19937_64 random_;
  std::uint64_t last_end_ = 0;
  std::map<std::string, MemoryTransport*> ends_;
  std::map<std::pair<std::string, std::string>, TimePoint> last_arrivals_;
  std::set<std::string> stalled_;
  std::deque<std::shared_ptr<Frame>> held_;  // of stalled ends
  std::set<std::string> damaged_;
  std::uint64_t moved_bytes_ = 0;
};

class MemoryTransport final : public Transport {
 public:
  // `clock`: of this process; destroyed after the transport.
  MemoryTransport(MemoryNetwork& network, Clock& clock);
  ~MemoryTransport() override;
  MemoryTransport(const MemoryTransport&) = delete;
  MemoryTransport& operator=(const MemoryTransport&) = delete;

  std::string address() const override { return address_; }
  void begin(Rank self, std::span<const Peer> peers, std::uint32_t generation) override;
  void post(Round round, std::vector<Send> sends, std::vector<Receive> receives, Duration deadline,
            Completion done) override;
  void cancel(Completion done) override;

 private:
  friend class MemoryNetwork;
  using Frame = MemoryNetwork::Frame;

  void hear(const std::shared_ptr<Frame>& frame, bool damaged);
  void hear_data(const Frame& frame, bool damaged);
  void lose(const std::string& address);
  void carried(const std::string& target);
  void speak_to(Rank peer);
  void check(const Result<void>& result);
  void schedule_turn();
  void turn();
  void arm_expiry();

  MemoryNetwork& network_;
  Clock& clock_;
  std::string address_;
  Exchange exchange_;
  std::map<std::string, Rank> peers_;              // by address
  std::map<std::string, std::size_t> on_the_way_;  // pieces of data to each address
  std::set<std::string> lost_;
  std::deque<std::shared_ptr<Frame>> early_;  // of exchanges that this end has not begun
  std::set<Rank> to_wake_;
  std::vector<std::function<void()>> callbacks_;
  bool turn_scheduled_ = false;
  TimerId turn_timer_ = 0;
  TimerId expiry_timer_ = 0;
  TimePoint expiry_{};
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace vckpt
