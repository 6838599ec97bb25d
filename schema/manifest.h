// The records on storage: what is committed, by whom, continuing what. All but data files are made by publish_once and
// never change.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "digest.h"
#include "ids.h"
#include "item.h"

namespace vckpt {

struct RunRecord {
  std::string name;
  Nonce nonce;  // proves that two mounts are one root
  bool operator==(const RunRecord&) const = default;
};

struct EpochRecord {
  Epoch epoch;
  Nonce nonce;  // of the writer: tells our record from another's after a lost answer
  std::string host;
  std::string endpoint;  // empty: a writer without a server
  std::string public_key;
  std::int64_t started_unix_s = 0;  // for people; decides nothing
  bool operator==(const EpochRecord&) const = default;
};

// One data file of a checkpoint.
struct FileRecord {
  std::string section;
  Rank rank;
  std::uint32_t index = 0;
  std::uint32_t store = 0;         // 0: the root
  std::uint64_t header_bytes = 0;  // safetensors length word, header and padding: data starts here
  std::uint64_t data_bytes = 0;
  std::uint32_t header_digest = 0;           // chunk_digest of the header_bytes under header_chunk
  std::vector<std::uint32_t> chunk_digests;  // ceil(data_bytes / chunk_bytes)
  bool operator==(const FileRecord&) const = default;
};

// The committed truth about one checkpoint, next to its plan. On storage it is cut into segments.
struct Manifest {
  CheckpointId id;
  Digest plan;
  std::uint32_t world_size = 0;
  std::string meta;               // the caller's JSON text, or empty
  std::vector<FileRecord> files;  // sorted by (section, rank, index)
  std::vector<StoredItem> items;  // sorted by (section, name, rank)
  bool operator==(const Manifest&) const = default;
};

// A part of a manifest: some of its files and items, in order.
struct ManifestSegment {
  CheckpointId id;
  Digest plan;
  std::uint32_t world_size = 0;
  std::uint32_t index = 0;
  std::uint32_t count = 0;
  std::string meta;  // in segment 0
  std::vector<FileRecord> files;
  std::vector<StoredItem> items;
  bool operator==(const ManifestSegment&) const = default;
};

struct SegmentReference {
  Digest digest;
  std::uint64_t length_bytes = 0;
  bool operator==(const SegmentReference&) const = default;
};

struct SectionSummary {
  std::string name;
  std::uint64_t tensors = 0;
  std::uint64_t data_bytes = 0;
  bool operator==(const SectionSummary&) const = default;
};

enum class Verdict : std::uint8_t { commit = 1, abort = 2 };

constexpr std::size_t decision_bytes_max = 64 * 1024;
constexpr std::size_t segments_max = 1024;

// The one register of an attempt.
struct Decision {
  CheckpointId id;
  Verdict verdict = Verdict::abort;
  Epoch decided_by;
  Nonce nonce;                         // of the writer; segment names carry (decided_by, nonce)
  std::optional<CheckpointId> parent;  // COMMIT: the checkpoint this line of training continues from
  std::string reason;                  // ABORT: one line
  Digest plan;
  std::uint32_t world_size = 0;
  std::vector<SegmentReference> segments;
  std::vector<SectionSummary> sections;
  std::int64_t decided_unix_s = 0;  // for people
  bool keep_forever = false;
  bool operator==(const Decision&) const = default;
};

std::vector<ManifestSegment> split_manifest(const Manifest& manifest, std::size_t segment_bytes_target);
// corrupt: segments missing, of another checkpoint, or out of order.
Result<Manifest> join_manifest(std::vector<ManifestSegment> segments);

}  // namespace vckpt
