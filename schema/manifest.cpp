#include "schema/manifest.h"

#include <algorithm>
#include <tuple>

#include "schema/checked.h"
#include "schema/codec.h"

namespace vckpt {
namespace {

// About what a record takes of a segment.
std::uint64_t weight(const FileRecord& file) {
  return 96 + file.section.size() + file.chunk_digests.size() * sizeof(std::uint32_t);
}
std::uint64_t weight(const StoredItem& stored) {
  return 96 + stored.item.section.size() + stored.item.name.size() + encode(stored.item.value).size();
}

// Deals records out in order; a segment takes at least one and closes before it would exceed the target.
class Dealer {
 public:
  Dealer(const Manifest& manifest, std::uint64_t segment_bytes)
      : manifest_(manifest), segment_bytes_(segment_bytes), filled_(manifest.meta.size()) {
    open();
    segments_.back().meta = manifest.meta;
  }

  template <typename Record>
  void deal(const Record& record, std::uint64_t bytes, std::vector<Record> ManifestSegment::*part) {
    if (filled_ + bytes > segment_bytes_ && filled_ > 0) {
      open();
      filled_ = 0;
    }
    (segments_.back().*part).push_back(record);
    filled_ += bytes;
  }

  std::vector<ManifestSegment> finish() && {
    for (auto& segment : segments_) segment.count = static_cast<std::uint32_t>(segments_.size());
    return std::move(segments_);
  }

 private:
  void open() {
    ManifestSegment segment;
    segment.id = manifest_.id;
    segment.plan = manifest_.plan;
    segment.world_size = manifest_.world_size;
    segment.index = static_cast<std::uint32_t>(segments_.size());
    segments_.push_back(std::move(segment));
  }

  const Manifest& manifest_;
  std::uint64_t segment_bytes_;
  std::uint64_t filled_;
  std::vector<ManifestSegment> segments_;
};

std::string place(const FileRecord& file) {
  return file.section + " of rank " + std::to_string(file.rank.value) + ", file " + std::to_string(file.index);
}

Result<void> check_order(const Manifest& manifest) {
  for (std::size_t i = 1; i < manifest.files.size(); ++i) {
    const auto& a = manifest.files[i - 1];
    const auto& b = manifest.files[i];
    if (std::tie(a.section, a.rank, a.index) >= std::tie(b.section, b.rank, b.index)) {
      return corrupt("manifest of " + manifest.id.name() + ": " + place(b) + " is not sorted, or listed twice");
    }
  }
  for (std::size_t i = 1; i < manifest.items.size(); ++i) {
    const auto& a = manifest.items[i - 1];
    const auto& b = manifest.items[i];
    if (std::tie(a.item.section, a.item.name, a.rank) >= std::tie(b.item.section, b.item.name, b.rank)) {
      return corrupt("manifest of " + manifest.id.name() + ": item '" + b.item.section + ":" + b.item.name +
                     "' is not sorted, or listed twice");
    }
  }
  return {};
}

}  // namespace

std::vector<ManifestSegment> split_manifest(const Manifest& manifest, std::size_t segment_bytes_target) {
  std::uint64_t total = manifest.meta.size();
  std::vector<std::uint64_t> item_bytes;
  item_bytes.reserve(manifest.items.size());
  for (const auto& item : manifest.items) item_bytes.push_back(weight(item));
  for (const auto& file : manifest.files) total += weight(file);
  for (const auto bytes : item_bytes) total += bytes;
  // Two neighbours together exceed the target, so with this floor there are at most segments_max segments.
  const std::uint64_t floor = divide_up(2 * total, segments_max - 1);
  Dealer dealer(manifest, std::max<std::uint64_t>(segment_bytes_target, floor));
  for (const auto& file : manifest.files) dealer.deal(file, weight(file), &ManifestSegment::files);
  for (std::size_t i = 0; i < manifest.items.size(); ++i) {
    dealer.deal(manifest.items[i], item_bytes[i], &ManifestSegment::items);
  }
  return std::move(dealer).finish();
}

Result<Manifest> join_manifest(std::vector<ManifestSegment> segments) {
  if (segments.empty()) return corrupt("manifest: no segments");
  auto& first = segments.front();
  const std::string where = "manifest of " + first.id.name();
  Manifest manifest{first.id, first.plan, first.world_size, std::move(first.meta), {}, {}};
  const auto count = first.count;
  for (std::size_t i = 0; i < segments.size(); ++i) {
    auto& segment = segments[i];
    if (segment.id != manifest.id) return corrupt(where + ": a segment of " + segment.id.name());
    if (segment.plan != manifest.plan || segment.world_size != manifest.world_size || segment.count != count) {
      return corrupt(where + ": segment " + std::to_string(i) + " is of another plan, world size or count");
    }
    if (segment.index != i) {
      return corrupt(where + ": segment " + std::to_string(segment.index) + " in the place of " + std::to_string(i));
    }
    if (i > 0 && !segment.meta.empty()) return corrupt(where + ": meta in segment " + std::to_string(i));
    std::move(segment.files.begin(), segment.files.end(), std::back_inserter(manifest.files));
    std::move(segment.items.begin(), segment.items.end(), std::back_inserter(manifest.items));
  }
  if (segments.size() != count) {
    return corrupt(where + ": " + std::to_string(segments.size()) + " of " + std::to_string(count) + " segments");
  }
  VCKPT_TRY_VOID(check_order(manifest));
  return manifest;
}

}  // namespace vckpt
