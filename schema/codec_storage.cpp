// The records on storage: run, epoch, manifest segment, decision.
#include <algorithm>
#include <tuple>

#include "schema/checked.h"
#include "schema/codec_columns.h"
#include "schema/digest.h"

namespace vckpt::wire {

void write(CheckpointId::Builder builder, const vckpt::CheckpointId& id) {
  builder.setEpoch(id.epoch.value);
  builder.setAttempt(id.attempt.value);
  builder.setStep(id.step.value);
}

vckpt::CheckpointId read(CheckpointId::Reader reader) {
  return {Epoch(reader.getEpoch()), Attempt(reader.getAttempt()), Step(reader.getStep())};
}

void write(FileRecord::Builder builder, const vckpt::FileRecord& file) {
  builder.setSection(text(file.section));
  builder.setRank(file.rank.value);
  builder.setIndex(file.index);
  builder.setStore(file.store);
  builder.setHeaderDigest(file.header_digest);
  builder.setHeaderBytes(file.header_bytes);
  builder.setDataBytes(file.data_bytes);
  fill(builder.initChunkDigests(list_size(file.chunk_digests.size())), file.chunk_digests);
}

vckpt::FileRecord read_part(FileRecord::Reader reader, std::uint64_t first_chunk) {
  vckpt::FileRecord file;
  file.section = section_of(reader.getSection());
  file.rank = Rank(reader.getRank());
  file.index = reader.getIndex();
  file.store = reader.getStore();
  file.header_digest = reader.getHeaderDigest();
  file.header_bytes = reader.getHeaderBytes();
  file.data_bytes = reader.getDataBytes();
  file.chunk_digests = numbers_of<std::uint32_t>(reader.getChunkDigests());
  require(checked_add(file.header_bytes, file.data_bytes).has_value(), "file: header and data overflow");
  const auto chunks = divide_up(file.data_bytes, chunk_bytes);
  require(first_chunk <= chunks && file.chunk_digests.size() <= chunks - first_chunk,
          "chunk digests: more than the file has chunks");
  return file;
}

vckpt::FileRecord read(FileRecord::Reader reader) {
  auto file = read_part(reader, 0);
  require(file.chunk_digests.size() == divide_up(file.data_bytes, chunk_bytes), "chunk digests: not one per chunk");
  return file;
}

static void write(StoredItem::Builder builder, const vckpt::StoredItem& stored) {
  builder.setRank(stored.rank.value);
  write(builder.initItem(), stored.item);
}

static vckpt::StoredItem read(StoredItem::Reader reader) { return {Rank(reader.getRank()), read(reader.getItem())}; }

static void write(SegmentReference::Builder builder, const vckpt::SegmentReference& segment) {
  builder.setDigest(blob(segment.digest));
  builder.setLengthBytes(segment.length_bytes);
}

static vckpt::SegmentReference read(SegmentReference::Reader reader) {
  return {digest_of(reader.getDigest()), reader.getLengthBytes()};
}

static void write(SectionSummary::Builder builder, const vckpt::SectionSummary& section) {
  builder.setName(text(section.name));
  builder.setTensors(section.tensors);
  builder.setDataBytes(section.data_bytes);
}

static vckpt::SectionSummary read(SectionSummary::Reader reader) {
  return {section_of(reader.getName()), reader.getTensors(), reader.getDataBytes()};
}

static void write(ManifestSegment::Builder builder, const vckpt::ManifestSegment& segment) {
  write(builder.initId(), segment.id);
  builder.setPlan(blob(segment.plan));
  builder.setWorldSize(segment.world_size);
  builder.setIndex(segment.index);
  builder.setCount(segment.count);
  builder.setMeta(text(segment.meta));
  write_each(builder.initFiles(list_size(segment.files.size())), segment.files);
  write_each(builder.initItems(list_size(segment.items.size())), segment.items);
}

static void check(const vckpt::ManifestSegment& segment) {
  require(segment.count <= segments_max && segment.index < segment.count, "index: not below the count of segments");
  require(segment.index == 0 || segment.meta.empty(), "meta: not in segment 0");
  for (std::size_t i = 0; i < segment.files.size(); ++i) {
    const auto& file = segment.files[i];
    require(file.rank.value < segment.world_size, "files: a rank that is out of range");
    if (i == 0) continue;
    const auto& before = segment.files[i - 1];
    require(std::tie(before.section, before.rank, before.index) < std::tie(file.section, file.rank, file.index),
            "files: not sorted, or listed twice");
  }
  for (std::size_t i = 0; i < segment.items.size(); ++i) {
    const auto& [rank, item] = segment.items[i];
    require(rank.value < segment.world_size, "items: a rank that is out of range");
    if (i == 0) continue;
    const auto& [rank_before, before] = segment.items[i - 1];
    require(std::tie(before.section, before.name, rank_before) < std::tie(item.section, item.name, rank),
            "items: not sorted, or listed twice");
  }
}

static vckpt::ManifestSegment read(ManifestSegment::Reader reader) {
  vckpt::ManifestSegment segment;
  segment.id = wire::read(reader.getId());
  segment.plan = digest_of(reader.getPlan());
  segment.world_size = reader.getWorldSize();
  segment.index = reader.getIndex();
  segment.count = reader.getCount();
  segment.meta = text(reader.getMeta());
  segment.files = read_each<vckpt::FileRecord>(reader.getFiles(), "files");
  segment.items = read_each<vckpt::StoredItem>(reader.getItems(), "items");
  check(segment);
  return segment;
}

static void write(Decision::Builder builder, const vckpt::Decision& decision) {
  write(builder.initId(), decision.id);
  builder.setVerdict(static_cast<std::uint8_t>(decision.verdict));
  builder.setKeepForever(decision.keep_forever);
  builder.setWorldSize(decision.world_size);
  builder.setDecidedBy(decision.decided_by.value);
  builder.setNonce(decision.nonce.value);
  builder.setDecidedUnixS(decision.decided_unix_s);
  if (decision.parent) write(builder.initParent(), *decision.parent);
  builder.setReason(text(decision.reason));
  builder.setPlan(blob(decision.plan));
  write_each(builder.initSegments(list_size(decision.segments.size())), decision.segments);
  write_each(builder.initSections(list_size(decision.sections.size())), decision.sections);
}

static vckpt::Decision read(Decision::Reader reader) {
  vckpt::Decision decision;
  decision.id = wire::read(reader.getId());
  decision.verdict = enum_of(reader.getVerdict(), Verdict::abort, "verdict");
  decision.keep_forever = reader.getKeepForever();
  decision.world_size = reader.getWorldSize();
  decision.decided_by = Epoch(reader.getDecidedBy());
  decision.nonce = Nonce(reader.getNonce());
  decision.decided_unix_s = reader.getDecidedUnixS();
  if (reader.hasParent()) decision.parent = wire::read(reader.getParent());
  decision.reason = text(reader.getReason());
  decision.plan = digest_of(reader.getPlan());
  decision.segments = read_each<vckpt::SegmentReference>(reader.getSegments(), "segments");
  decision.sections = read_each<vckpt::SectionSummary>(reader.getSections(), "sections");
  require(decision.segments.size() <= segments_max, "segments: too many");
  return decision;
}

// A seal follows records that no digest names, so that a flipped bit does not pass for another record: the CRC32C of
// all bytes before it and a zero, four bytes each.
static constexpr std::size_t seal_bytes = 8;

static Bytes seal_of(std::span<const std::byte> bytes) {
  const std::uint32_t seal[2] = {crc32c(bytes), 0};
  const auto words = std::as_bytes(std::span(seal));
  return {words.begin(), words.end()};
}

static Bytes sealed(Bytes bytes) {
  const auto seal = seal_of(bytes);
  bytes.insert(bytes.end(), seal.begin(), seal.end());
  return bytes;
}

template <typename Root, typename T, typename Read>
static Result<T> decode_sealed_as(std::string_view what, std::span<const std::byte> bytes, Read&& read) {
  const auto record = bytes.first(bytes.size() - std::min(seal_bytes, bytes.size()));
  const auto seal = seal_of(record);
  if (!std::equal(seal.begin(), seal.end(), bytes.begin() + static_cast<std::ptrdiff_t>(record.size()), bytes.end())) {
    return corrupt(std::string(what) + ": its checksum is not that of its bytes");
  }
  return decode_as<Root, T>(what, bytes, std::forward<Read>(read), seal_bytes);
}

}  // namespace vckpt::wire

namespace vckpt {

Bytes encode(const RunRecord& record) {
  return wire::sealed(wire::encode_as<wire::RunRecord>(record, [](auto builder, const RunRecord& value) {
    builder.setName(wire::text(value.name));
    builder.setNonce(value.nonce.value);
  }));
}

Result<RunRecord> decode_run(std::span<const std::byte> bytes) {
  return wire::decode_sealed_as<wire::RunRecord, RunRecord>("run record", bytes, [](auto reader) {
    return RunRecord{wire::text(reader.getName()), Nonce(reader.getNonce())};
  });
}

Bytes encode(const EpochRecord& record) {
  return wire::sealed(wire::encode_as<wire::EpochRecord>(record, [](auto builder, const EpochRecord& value) {
    builder.setEpoch(value.epoch.value);
    builder.setNonce(value.nonce.value);
    builder.setHost(wire::text(value.host));
    builder.setEndpoint(wire::text(value.endpoint));
    builder.setPublicKey(wire::text(value.public_key));
    builder.setStartedUnixS(value.started_unix_s);
  }));
}

Result<EpochRecord> decode_epoch(std::span<const std::byte> bytes) {
  return wire::decode_sealed_as<wire::EpochRecord, EpochRecord>("epoch record", bytes, [](auto reader) {
    return EpochRecord{Epoch(reader.getEpoch()),          Nonce(reader.getNonce()),
                       wire::text(reader.getHost()),      wire::text(reader.getEndpoint()),
                       wire::text(reader.getPublicKey()), reader.getStartedUnixS()};
  });
}

Bytes encode(const ManifestSegment& segment) {
  return wire::encode_as<wire::ManifestSegment>(
      segment, [](auto builder, const ManifestSegment& value) { wire::write(builder, value); });
}

Result<ManifestSegment> decode_segment(std::span<const std::byte> bytes) {
  return wire::decode_as<wire::ManifestSegment, ManifestSegment>("manifest segment", bytes,
                                                                 [](auto reader) { return wire::read(reader); });
}

Bytes encode(const Decision& decision) {
  return wire::sealed(wire::encode_as<wire::Decision>(
      decision, [](auto builder, const Decision& value) { wire::write(builder, value); }));
}

Result<Decision> decode_decision(std::span<const std::byte> bytes) {
  if (bytes.size() > decision_bytes_max) {
    return corrupt("decision: " + std::to_string(bytes.size()) + " bytes; at most " +
                   std::to_string(decision_bytes_max));
  }
  return wire::decode_sealed_as<wire::Decision, Decision>("decision", bytes,
                                                          [](auto reader) { return wire::read(reader); });
}

}  // namespace vckpt
