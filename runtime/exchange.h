// What one rank's posted rounds still need from and owe to each peer. Pure: it is told which frames came and which were
// handed over, and says what to say next; sockets and timers are the business of the transport around it. The only
// memory it touches is the targets of posted receives, in on_bytes.
#pragma once

#include <deque>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "runtime/time_point.h"
#include "runtime/transport.h"
#include "runtime/transport_frame.h"

namespace vckpt {

constexpr std::size_t rounds_ahead_max = 1 << 16;  // rounds a peer may be ready for before we have posted them

// A frame to say; `payload` lies in the source of a posted send.
struct OutgoingFrame {
  FrameKind kind = FrameKind::ready;
  Round round;
  std::uint64_t offset_bytes = 0;
  std::uint64_t length_bytes = 0;
  std::span<const std::byte> payload;
};

// Threading: one actor's. Completions are never run here, only handed out by take_finished.
class Exchange {
 public:
  struct Finished {
    Transport::Completion done;
    Result<void> result;
  };

  // Forgets everything before; nothing is posted.
  void begin(Rank self, std::span<const Peer> peers, std::uint32_t generation);
  bool running() const { return running_; }
  bool active() const { return running_ && !failure_; }
  std::uint32_t generation() const { return generation_; }
  const Peer& self() const { return sessions_.at(self_).peer; }
  const Peer* find(Rank peer) const;

  // As Transport::post. A round that cannot be posted finishes at once with internal; after a failure, with that.
  void post(Round round, std::vector<Send> sends, std::vector<Receive> receives, Duration deadline,
            Transport::Completion done, TimePoint now);

  // What a peer said; all return corrupt, naming it, when it breaks the protocol.
  Result<void> on_ready(Rank peer, Round round, std::uint64_t length_bytes, TimePoint now);
  Result<void> on_ack(Rank peer, Round round, TimePoint now);
  // A data frame's header, then its payload piece by piece.
  Result<void> on_data(Rank peer, Round round, std::uint64_t offset_bytes, std::uint64_t length_bytes, TimePoint now);
  void on_bytes(Rank peer, Round round, std::span<const std::byte> bytes, TimePoint now);

  // The next frame for a peer, taken from what waits: ready and ack before data, lower rounds first.
  std::optional<OutgoingFrame> next(Rank peer);
  // A part of a frame was handed over, or all of it.
  void moved(const OutgoingFrame& frame, TimePoint now);
  void sent(Rank peer, const OutgoingFrame& frame, TimePoint now);

  // Whether a posted round still needs this peer, or it needs us.
  bool needs(Rank peer) const { return lowest_open_round(peer).has_value(); }
  // unavailable, naming rank, host and the lowest round that needs it.
  Error lost(Rank peer, const std::string& why) const;
  Error broken(Rank peer, Round round, const std::string& why) const;

  // The first failure is everybody's: all posted rounds and all later ones end with it, until the next begin.
  void fail(Error error);
  // unavailable, naming who is waited for, when a round has not moved for its deadline. A round waits for the lower
  // ones: their movement counts as its own.
  std::optional<Error> expired(TimePoint now) const;
  std::optional<TimePoint> next_expiry() const;

  // All posted rounds finish as aborted; nothing runs until the next begin.
  void cancel();

  std::vector<Finished> take_finished();

 private:
  struct Outbound {
    std::deque<std::span<const std::byte>> left;  // not given out by next
    std::uint64_t length_bytes = 0;
    std::uint64_t handed_bytes = 0;  // given out by next
    bool ready = false;
    bool handed_all = false;
    bool acknowledged = false;
  };
  struct Inbound {
    std::uint64_t length_bytes = 0;
    std::vector<Copy> scatter;
    std::uint64_t expected_bytes = 0;  // announced by data frames
    std::uint64_t arrived_bytes = 0;
    bool complete = false;
    bool acknowledged = false;
  };
  struct Posted {
    std::map<Rank, Outbound> sends;
    std::map<Rank, Inbound> receives;
    std::size_t open_count = 0;
    Duration deadline{};
    TimePoint moved{};
    Transport::Completion done;
  };
  struct PeerSession {
    Peer peer;
    std::map<Round, std::uint64_t> early;  // rounds it is ready for that we have not posted: expected bytes
    std::optional<Round> last_ready;
    std::deque<OutgoingFrame> control;
    std::set<Round> sendable;
  };

  std::optional<Error> refusal(Round round, const std::vector<Send>& sends, const std::vector<Receive>& receives) const;
  Result<void> take_ready(Rank peer, Round round, Outbound& send, std::uint64_t length_bytes);
  void receive_arrived(Rank peer, Round round);
  void close_one(std::map<Round, Posted>::iterator posted);
  std::optional<Round> lowest_open_round(Rank peer) const;
  std::string waiting_for(const Posted& posted) const;
  std::string name(Rank peer) const;

  bool running_ = false;
  Rank self_;
  std::uint32_t generation_ = 0;
  std::map<Rank, PeerSession> sessions_;
  std::map<Round, Posted> rounds_;
  std::optional<Round> last_posted_;
  std::optional<Error> failure_;
  std::vector<Finished> finished_;
};

}  // namespace vckpt
