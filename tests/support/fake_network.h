// Channels between coordinators and workers on virtual time: frames are late, lost with their connection, or dropped,
// as one seed says; per peer they keep their order and never come twice. A worker's connection is made, and made again,
// by itself, like ZeroMQ's. A node crashes when its channel is destroyed: what was on its way is lost with it.
#pragma once

#include <map>
#include <memory>
#include <random>
#include <string>

#include "runtime/channel.h"
#include "runtime/frame_queue.h"
#include "tests/support/virtual_clock.h"

namespace vckpt {

struct NetworkFaults {
  Duration delay_max = std::chrono::milliseconds(1);  // of a frame, uniform from nothing
  unsigned dropped_per_mille = 0;                     // frames that never arrive
  unsigned broken_per_mille = 0;                      // frames that take their connection with them
};

// Outlives its channels.
class FakeNetwork {
 public:
  FakeNetwork(VirtualClock& clock, unsigned seed) : clock_(clock), random_(seed) {}
  FakeNetwork(const FakeNetwork&) = delete;
  FakeNetwork& operator=(const FakeNetwork&) = delete;

  // Any text is an endpoint. unavailable: it is in use.
  Result<std::unique_ptr<Channel>> bind(const std::string& endpoint);
  std::unique_ptr<Channel> connect(const std::string& endpoint, Incarnation incarnation);

  NetworkFaults faults;  // of frames sent from now on
  // The worker's connection breaks, with all that is on its way, and is made again.
  void disconnect(const PeerId& worker);
  // It breaks and stays so until heal.
  void cut(const PeerId& worker);
  void heal(const PeerId& worker);

  std::uint64_t sent_frames() const { return sent_frames_; }
  std::uint64_t lost_frames() const { return lost_frames_; }  // by faults and ended connections

 private:
  class CoordinatorEnd;
  class WorkerEnd;

  enum class Toward : std::uint8_t { coordinator, worker };
  struct Way {
    FrameQueue queue{std::uint64_t{1} << 30};
    std::size_t on_the_way = 0;
    TimePoint last_arrival{};
  };
  struct Link {
    std::string endpoint;
    PeerId worker;
    WorkerEnd* end = nullptr;
    bool up = false;
    bool cut = false;
    std::uint64_t era = 0;  // of this connection: what was on its way in an earlier one is void
    Way up_way;             // toward the coordinator
    Way down_way;
    Way& way(Toward toward) { return toward == Toward::coordinator ? up_way : down_way; }
  };

  Link* find(const PeerId& worker);
  void attempt_soon(const PeerId& worker);
  void attempt(const PeerId& worker);
  void break_link(Link& link);
  Result<void> send(Link& link, Toward toward, Bytes frame);
  void flush(Link& link, Toward toward);
  void arrive(const PeerId& worker, Toward toward, std::uint64_t era, Bytes frame);
  bool happens(unsigned per_mille) { return random_() % 1000 < per_mille; }
  Duration delay();

  VirtualClock& clock_;
  std::mt19937_64 random_;
  std::map<std::string, CoordinatorEnd*> coordinators_;  // by endpoint
  std::map<PeerId, Link> links_;
  std::uint64_t last_era_ = 0;
  std::uint64_t sent_frames_ = 0;
  std::uint64_t lost_frames_ = 0;
};

}  // namespace vckpt
