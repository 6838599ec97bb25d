// Bulk bytes between ranks as a seam. Transport moves what a plan says and decides nothing. A round completes for a
// rank when all its sends were acknowledged and all its receives have arrived; data of (round, pair) moves only after
// the receiver has posted that round, so rounds in ascending order cannot deadlock (schema/README.md, rounds).
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "runtime/clock.h"
#include "runtime/memory.h"
#include "schema/ids.h"
#include "schema/message.h"
#include "schema/result.h"

namespace vckpt {

// The parts of `source`, one after another, are leased until the round is done. Packed bytes, already verified.
struct Send {
  Rank peer;
  std::vector<std::span<const std::byte>> source;
};

// `scatter` receives length_bytes in packed order; touched only by copies that cancel can stop.
struct Receive {
  Rank peer;
  std::uint64_t length_bytes = 0;
  std::vector<Copy> scatter;
};

// Threading: one actor owns a Transport; completions run on that actor, never from inside a call.
class Transport {
 public:
  using Completion = std::function<void(Result<void>)>;

  virtual ~Transport() = default;

  // Where peers reach this rank; goes into Join.
  virtual std::string address() const = 0;

  // The peers of the session and the generation of the exchange. Frames of other generations are dropped. Only while no
  // round is posted.
  virtual void begin(Rank self, std::span<const Peer> peers, std::uint32_t generation) = 0;

  // Posts one round; at most one send and one receive per peer, none with itself. Every rank posts the rounds it takes
  // part in, ascending; several may be posted at once. Completes once: ok; unavailable when a peer is gone or nothing
  // has moved until `deadline` (naming rank, host, round); aborted after cancel; corrupt when a peer breaks the
  // protocol.
  virtual void post(Round round, std::vector<Send> sends, std::vector<Receive> receives, Duration deadline,
                    Completion done) = 0;

  // Completes when nothing of this transport can touch memory any more; posted rounds complete as aborted before.
  virtual void cancel(Completion done) = 0;
};

}  // namespace vckpt
