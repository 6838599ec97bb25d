#include "runtime/channel.h"

#include <cstdio>

namespace vckpt {

PeerId worker_peer(Incarnation incarnation) {
  char text[32];
  std::snprintf(text, sizeof text, "worker-%016llx", static_cast<unsigned long long>(incarnation.value));
  return text;
}

Result<void> check_frame(const PeerId& peer, const Bytes& frame) {
  if (frame.empty()) return invalid("an empty frame to " + peer);
  if (frame.size() <= channel_frame_bytes_max) return {};
  return invalid("a frame of " + std::to_string(frame.size()) + " bytes to " + peer + ": the limit is " +
                 std::to_string(channel_frame_bytes_max));
}

}  // namespace vckpt
