// Writes a manifest as segments: cut, encoded and digested on Compute, then published one after another.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "runtime/compute.h"
#include "runtime/storage.h"
#include "schema/manifest.h"

namespace vckpt {

constexpr std::size_t segment_bytes_target = std::size_t{4} << 20;

// corrupt: other bytes stand under a segment's name. The storage outlives the completion.
void publish_manifest(Compute& compute, Storage& storage, std::shared_ptr<const Manifest> manifest, Epoch decided_by,
                      Nonce nonce, std::function<void(Result<std::vector<SegmentReference>>)> done);

}  // namespace vckpt
