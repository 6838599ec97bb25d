// What one rank packs for its peers in a round. Replicas want the same slices: those are packed once, and a send is
// made of parts of the one packed buffer. The planner counts on that.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "schema/box.h"
#include "schema/message.h"

namespace vckpt {

struct Packs {
  struct Part {
    const Slice* slice = nullptr;
    std::uint32_t run = 0;
    Range bytes;  // of the packed buffer
  };
  std::vector<Part> parts;                // back to back
  std::vector<std::vector<Range>> sends;  // of each send, in its order: bytes of the packed buffer
  std::uint64_t length_bytes = 0;
};

// The slices of the sends must outlive the result. `slice_bytes`: the length of a packed slice.
Packs make_packs(const std::vector<const SendSlices*>& sends,
                 const std::function<std::uint64_t(const Slice&)>& slice_bytes);

}  // namespace vckpt
