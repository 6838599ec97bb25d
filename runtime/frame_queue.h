// Frames of one peer that the network does not take yet, in order and under a bound.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <string>
#include <utility>

#include "runtime/channel.h"

namespace vckpt {

class FrameQueue {
 public:
  explicit FrameQueue(std::uint64_t bytes_max) : bytes_max_(bytes_max) {}

  // exhausted at channel_queue_frames_max frames, or when others wait and the bytes exceed the bound.
  Result<void> push(const PeerId& peer, Bytes frame) {
    if (frames_.size() >= channel_queue_frames_max ||
        (!frames_.empty() && frame.size() > bytes_max_ - std::min(bytes_, bytes_max_))) {
      return exhausted("the queue to " + peer + " is full: " + std::to_string(frames_.size()) + " frames, " +
                       std::to_string(bytes_) + " bytes");
    }
    bytes_ += frame.size();
    frames_.push_back(std::move(frame));
    return {};
  }

  bool empty() const { return frames_.empty(); }
  const Bytes& front() const { return frames_.front(); }
  void pop() {
    bytes_ -= frames_.front().size();
    frames_.pop_front();
  }
  void clear() {
    frames_.clear();
    bytes_ = 0;
  }

 private:
  std::uint64_t bytes_max_;
  std::uint64_t bytes_ = 0;
  std::deque<Bytes> frames_;
};

}  // namespace vckpt
