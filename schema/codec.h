// Bytes of messages and records: Cap'n Proto (schema/control.capnp, schema/storage.capnp), canonical for equal values,
// so that digests of encoded bytes identify values. Decoders reject anything malformed as `corrupt`, naming the field;
// they bound segments, depth and traversal by the bytes received and never allocate more than a small multiple of them.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "item.h"
#include "layout.h"
#include "manifest.h"
#include "message.h"
#include "plan.h"
#include "result.h"

namespace vckpt {

using Bytes = std::vector<std::byte>;

struct EnvelopedMessage {
  Envelope envelope;
  Message message;
  bool operator==(const EnvelopedMessage&) const = default;
};

Bytes encode(const EnvelopedMessage& message);
Result<EnvelopedMessage> decode_message(std::span<const std::byte> bytes);

Bytes encode(const LayoutBody& body);
Result<LayoutBody> decode_body(std::span<const std::byte> bytes);
Digest digest(const LayoutBody& body);

Bytes encode(const Value& value);
Result<Value> decode_value(std::span<const std::byte> bytes);

Bytes encode(const SavePlan& plan);
Result<SavePlan> decode_plan(std::span<const std::byte> bytes);

Bytes encode(const RunRecord& record);
Result<RunRecord> decode_run(std::span<const std::byte> bytes);
Bytes encode(const EpochRecord& record);
Result<EpochRecord> decode_epoch(std::span<const std::byte> bytes);
Bytes encode(const ManifestSegment& segment);
Result<ManifestSegment> decode_segment(std::span<const std::byte> bytes);
Bytes encode(const Decision& decision);
Result<Decision> decode_decision(std::span<const std::byte> bytes);

constexpr std::size_t control_message_bytes_max = 16 << 20;

// Content above the limit of one control message travels in parts. A frame is what a channel carries: part `index` of
// `count` of one encoded message.
std::vector<Bytes> split_frames(std::span<const std::byte> encoded, std::uint64_t message_number,
                                std::size_t frame_bytes_max = control_message_bytes_max);

// Puts frames of one peer together again; frames of one message come in order (channels keep order). Bounded by
// `message_bytes_max`: more is `exhausted`, and a frame out of order or malformed is `corrupt`; both drop what was
// begun.
class FrameJoiner {
 public:
  explicit FrameJoiner(std::uint64_t message_bytes_max);
  // The whole encoded message, or empty while parts are missing.
  Result<Bytes> add(std::span<const std::byte> frame);

 private:
  std::uint64_t message_bytes_max_;
  std::uint64_t message_number_ = 0;
  std::uint32_t next_index_ = 0;
  std::uint32_t count_ = 0;
  Bytes begun_;
};

}  // namespace vckpt
