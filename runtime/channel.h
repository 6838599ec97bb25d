// Control messages as a seam: ordered, bounded, unreliable. A channel delivers whole frames, per peer in the order they
// were sent, each at most once; it may lose some (a broken connection), so requests above it are resent and idempotent.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "schema/codec.h"
#include "schema/ids.h"
#include "schema/result.h"

namespace vckpt {

// Opaque; on the coordinator's side a worker's routing id, on the worker's side always `coordinator_peer`.
using PeerId = std::string;
inline const PeerId coordinator_peer = "coordinator";

// The routing id of one worker process: random as its incarnation is, so that no two workers ever share one.
PeerId worker_peer(Incarnation incarnation);

constexpr std::size_t channel_queue_frames_max = 1024;  // per peer, of frames not yet handed to the network
constexpr std::size_t channel_frame_bytes_max = control_message_bytes_max + 64;  // 64: room for a frame's own header

// What every channel refuses to send, as invalid.
Result<void> check_frame(const PeerId& peer, const Bytes& frame);

// Threading: one actor owns a Channel; `on_frame` runs on that actor, never from inside send.
class Channel {
 public:
  using FrameHandler = std::function<void(const PeerId& peer, Bytes frame)>;

  virtual ~Channel() = default;

  // Set once, before anything is sent.
  virtual void on_frame(FrameHandler handler) = 0;

  // Queues a frame and returns at once. unavailable: the peer is not connected (coordinator side only). exhausted: its
  // queue is full. invalid: larger than channel_frame_bytes_max, or empty.
  virtual Result<void> send(const PeerId& peer, Bytes frame) = 0;

  // Forgets a peer: what is queued for it is dropped.
  virtual void drop(const PeerId& peer) = 0;
};

}  // namespace vckpt
