// Digests. Content: CRC32C of each 1 MiB chunk of a file's data, bound by xor to the place where the chunk belongs, so
// that a valid chunk in the wrong place fails too. Identity: XXH3-128 over encoded bytes.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ids.h"

namespace vckpt {

constexpr std::uint64_t chunk_bytes = 1 << 20;  // counted from the data start of a file; the last one may be shorter

std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t seed = 0);  // seed: of the bytes before
std::uint64_t xxh3_64(std::span<const std::byte> bytes);
Digest xxh3_128(std::span<const std::byte> bytes);

// Where a file belongs. `rank` and `index` make its name within the section.
struct FilePlace {
  CheckpointId checkpoint;
  std::string section;
  Rank rank;
  std::uint32_t index = 0;
  bool operator==(const FilePlace&) const = default;
};

constexpr std::uint64_t header_chunk = 0xFFFFFFFFFFFFFFFF;  // the chunk number under which a file's header is bound

// The low 32 bits of XXH3-64 over (epoch u64, attempt u64, section name, rank u32, index u32, chunk u64),
// little-endian.
std::uint32_t chunk_binding(const FilePlace& place, std::uint64_t chunk);

// What stands in the manifest: crc32c(bytes) ^ chunk_binding(place, chunk).
std::uint32_t chunk_digest(const FilePlace& place, std::uint64_t chunk, std::span<const std::byte> bytes);

}  // namespace vckpt
