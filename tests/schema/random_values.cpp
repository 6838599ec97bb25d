#include "tests/schema/random_values.h"

#include <algorithm>
#include <bit>

#include "schema/checked.h"
#include "schema/digest.h"

namespace vckpt::testing {

std::uint64_t RandomValues::number() {
  switch (below(4)) {
    case 0: return below(4);
    case 1: return below(1 << 20);
    case 2: return ~below(3);
    default: return random_();
  }
}

std::string RandomValues::text() {
  std::string text(below(12), '\0');
  for (auto& c : text) c = static_cast<char>(below(256));
  return text;
}

std::string RandomValues::section() {
  static const char* const names[] = {"model", "optimizer", "a", "B-2_x"};
  return names[below(4)];
}

std::string RandomValues::fqn(std::uint64_t unique) { return "layers." + std::to_string(unique) + ".w\xC3\xA9"; }

Digest RandomValues::digest() {
  Digest digest;
  for (auto& byte : digest.bytes) byte = static_cast<std::byte>(below(256));
  return digest;
}

CheckpointId RandomValues::id() { return {Epoch(number()), Attempt(number()), Step(number())}; }

Error RandomValues::error() { return {static_cast<Code>(1 + below(7)), text()}; }

Box RandomValues::box_within(const Dims& shape) {
  Box box;
  for (const auto size : shape) {
    const auto offset = size == 0 ? 0 : below(size);
    box.offsets.push_back(offset);
    box.sizes.push_back(size == 0 ? 0 : 1 + below(size - offset));
  }
  return box;
}

std::vector<TensorSpec> RandomValues::tensors() {
  std::vector<TensorSpec> tensors;
  for (std::uint64_t i = 0; i < 1 + below(4); ++i) {
    TensorSpec spec{fqn(i), static_cast<DType>(1 + below(dtype_count)), {}};
    for (std::uint64_t k = below(4); k > 0; --k) spec.shape.push_back(1 + below(40));
    tensors.push_back(std::move(spec));
  }
  return tensors;
}

LayoutBody RandomValues::body() {
  LayoutBody body{tensors(), {}};
  for (std::uint64_t i = below(6); i > 0; --i) {
    Entry entry;
    entry.tensor = static_cast<std::uint32_t>(below(body.tensors.size()));
    const auto& shape = body.tensors[entry.tensor].shape;
    if (below(2)) entry.box = box_within(shape);
    for (std::uint64_t k = shape.empty() ? 0 : below(3); k > 0; --k) {
      entry.cuts.push_back(Cut{static_cast<std::uint32_t>(below(shape.size())),
                               static_cast<std::uint32_t>(1 + below(9)), static_cast<std::uint32_t>(below(4))});
    }
    if (below(2)) {
      const auto count = elements(entry.box ? *entry.box : whole(shape));
      const auto begin = below(count + 1);
      entry.range = Range{begin, begin + below(count - begin + 1)};
    }
    body.entries.push_back(std::move(entry));
  }
  return body;
}

Value RandomValues::value(std::size_t depth_left) {
  switch (below(depth_left == 0 ? 6 : 8)) {
    case 0: return {};
    case 1: return {below(2) == 1};
    case 2: return {static_cast<std::int64_t>(number())};
    case 3: return {static_cast<double>(static_cast<std::int64_t>(number())) / 3.0};
    case 4: return {text()};
    case 5: return {Value::Bytes{text()}};
    case 6: {
      Value::List list(below(4));
      for (auto& element : list) element = value(depth_left - 1);
      return {std::move(list)};
    }
    default: {
      Value::Map map;
      for (std::uint64_t i = below(4); i > 0; --i) map.emplace_back(std::to_string(i) + text(), value(depth_left - 1));
      return {std::move(map)};
    }
  }
}

Item RandomValues::item(std::uint64_t unique) {
  return {section(), fqn(unique), static_cast<Scope>(1 + below(3)), value()};
}

FileRecord RandomValues::file(std::uint64_t unique) {
  FileRecord file{section(), Rank(static_cast<std::uint32_t>(below(4))), static_cast<std::uint32_t>(unique), 0, 0, 0, 0,
                  {}};
  file.store = static_cast<std::uint32_t>(below(2));
  file.header_bytes = below(1 << 20);
  file.data_bytes = below(4 * chunk_bytes);
  file.header_digest = static_cast<std::uint32_t>(number());
  file.chunk_digests.resize(divide_up(file.data_bytes, chunk_bytes));
  for (auto& digest : file.chunk_digests) digest = static_cast<std::uint32_t>(number());
  return file;
}

std::vector<Piece> RandomValues::pieces(const std::vector<TensorSpec>& tensors) {
  std::vector<Piece> pieces;
  for (std::uint64_t i = below(4); i > 0; --i) {
    const auto tensor = static_cast<std::uint32_t>(below(tensors.size()));
    pieces.push_back(Piece{tensor, box_within(tensors[tensor].shape)});
  }
  return pieces;
}

SavePlan RandomValues::plan() {
  SavePlan plan;
  const auto ranks = 1 + below(5);
  for (const char* name : {"model", "optimizer"}) {
    if (below(4) == 0) continue;
    SectionPlan section{name, tensors(), {}, {}};
    for (std::uint64_t i = below(3); i > 0; --i) {
      OwnedBody owned;
      const auto tensor = static_cast<std::uint32_t>(below(section.tensors.size()));
      Entry entry{tensor, std::nullopt, {}, std::nullopt};
      if (!section.tensors[tensor].shape.empty()) entry.cuts.push_back(Cut{0, 3, 1});
      owned.entries.push_back(std::move(entry));
      section.bodies.push_back(std::move(owned));
    }
    for (std::uint64_t rank = 0; rank < ranks; ++rank) {
      RankOwnership ownership;
      if (!section.bodies.empty() && below(3) != 0) {
        ownership.body = static_cast<std::uint32_t>(below(section.bodies.size()));
        ownership.coordinates = {static_cast<std::uint32_t>(number()), static_cast<std::uint32_t>(below(3))};
      }
      ownership.pieces = pieces(section.tensors);
      section.ranks.push_back(std::move(ownership));
    }
    plan.sections.push_back(std::move(section));
  }
  return plan;
}

RunRecord RandomValues::run() { return {text(), Nonce(number())}; }

EpochRecord RandomValues::epoch() {
  return {Epoch(number()), Nonce(number()), text(), text(), text(), static_cast<std::int64_t>(number())};
}

Manifest RandomValues::manifest() {
  Manifest manifest{id(), digest(), 4, text(), {}, {}};
  for (std::uint64_t i = below(5); i > 0; --i) manifest.files.push_back(file(i));
  for (std::uint64_t i = below(5); i > 0; --i) {
    manifest.items.push_back(StoredItem{Rank(static_cast<std::uint32_t>(below(4))), item(i)});
  }
  std::sort(manifest.files.begin(), manifest.files.end(), [](const FileRecord& a, const FileRecord& b) {
    return std::tie(a.section, a.rank, a.index) < std::tie(b.section, b.rank, b.index);
  });
  std::sort(manifest.items.begin(), manifest.items.end(), [](const StoredItem& a, const StoredItem& b) {
    return std::tie(a.item.section, a.item.name, a.rank) < std::tie(b.item.section, b.item.name, b.rank);
  });
  return manifest;
}

ManifestSegment RandomValues::segment() {
  auto whole = manifest();
  ManifestSegment segment{whole.id, whole.plan, whole.world_size, 0, 1, "", {}, {}};
  segment.count = static_cast<std::uint32_t>(1 + below(segments_max));
  segment.index = static_cast<std::uint32_t>(below(segment.count));
  if (segment.index == 0) segment.meta = std::move(whole.meta);
  segment.files = std::move(whole.files);
  segment.items = std::move(whole.items);
  return segment;
}

Decision RandomValues::decision() {
  Decision decision;
  decision.id = id();
  decision.verdict = below(2) ? Verdict::commit : Verdict::abort;
  decision.decided_by = Epoch(number());
  decision.nonce = Nonce(number());
  if (below(2)) decision.parent = id();
  decision.reason = text();
  decision.plan = digest();
  decision.world_size = static_cast<std::uint32_t>(number());
  for (std::uint64_t i = below(4); i > 0; --i) decision.segments.push_back(SegmentReference{digest(), number()});
  for (std::uint64_t i = below(3); i > 0; --i)
    decision.sections.push_back(SectionSummary{section(), number(), number()});
  decision.decided_unix_s = static_cast<std::int64_t>(number());
  decision.keep_forever = below(2) == 1;
  return decision;
}

Report RandomValues::report() {
  Report report;
  report.ranks = static_cast<std::uint32_t>(number());
  report.unique_bytes = number();
  report.bytes_written = number();
  report.storage_bytes_read = number();
  report.bytes_needed = number();
  report.bytes_received = number();
  report.most_loaded_over_mean = static_cast<double>(below(1000)) / 7;
  report.most_loaded_over_bound = static_cast<double>(below(1000)) / 7;
  report.plan_seconds = static_cast<double>(below(1000)) / 7;
  report.plan_cached = below(2) == 1;
  report.stall_seconds = static_cast<double>(below(1000)) / 7;
  report.stall_copy_seconds = static_cast<double>(below(1000)) / 7;
  report.stall_peers_seconds = static_cast<double>(below(1000)) / 7;
  report.durable_seconds = static_cast<double>(below(1000)) / 7;
  report.staging_peak_bytes = number();
  return report;
}

}  // namespace vckpt::testing
