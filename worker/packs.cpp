#include "worker/packs.h"

#include <algorithm>
#include <unordered_map>

namespace vckpt {
namespace {

// Of what makes most slices differ.
std::size_t hash_of(const Slice& slice, std::uint32_t run) {
  std::size_t hash = run * std::size_t{31} + slice.tensor;
  for (const auto* box : {&slice.piece, &slice.target}) {
    for (const auto offset : box->offsets) hash = hash * 31 + offset;
    for (const auto size : box->sizes) hash = hash * 31 + size;
  }
  return hash;
}

void append(std::vector<Range>& ranges, Range range) {
  if (!ranges.empty() && ranges.back().end == range.begin) {
    ranges.back().end = range.end;
  } else {
    ranges.push_back(range);
  }
}

}  // namespace

Packs make_packs(const std::vector<const SendSlices*>& sends,
                 const std::function<std::uint64_t(const Slice&)>& slice_bytes) {
  Packs packs;
  std::unordered_multimap<std::size_t, std::size_t> known;  // hash -> index into parts
  for (const auto* send : sends) {
    auto& ranges = packs.sends.emplace_back();
    for (std::size_t i = 0; i < send->slices.size(); ++i) {
      const Slice& slice = send->slices[i];
      const auto hash = hash_of(slice, send->runs[i]);
      const auto [first, last] = known.equal_range(hash);
      const auto same = std::find_if(first, last, [&](const auto& entry) {
        const auto& part = packs.parts[entry.second];
        return part.run == send->runs[i] && *part.slice == slice;
      });
      if (same != last) {
        append(ranges, packs.parts[same->second].bytes);
        continue;
      }
      const Range bytes{packs.length_bytes, packs.length_bytes + slice_bytes(slice)};
      known.emplace(hash, packs.parts.size());
      packs.parts.push_back({&slice, send->runs[i], bytes});
      packs.length_bytes = bytes.end;
      append(ranges, bytes);
    }
  }
  return packs;
}

}  // namespace vckpt
