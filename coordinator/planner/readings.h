// Which rank reads which chunks. A file is taken apart into runs of chunks that the same ranks want; every run goes to
// ranks that want it, balanced as ownership is. Nothing is read that nobody wants, and nothing twice.
#pragma once

#include <cstdint>
#include <vector>

#include "coordinator/planner/holder_sets.h"
#include "coordinator/planner/load_planner.h"
#include "coordinator/planner/wants.h"
#include "schema/plan.h"

namespace vckpt {

// A stored file of which something is wanted.
struct WantedFile {
  const FileRecord* record = nullptr;
  std::uint32_t section = 0;        // index into Wants::sections
  std::vector<PlacedPiece> pieces;  // those that somebody wants something of, in file order
};

// Consecutive chunks of a file that one rank reads.
struct Reading {
  std::uint32_t file = 0;  // index into the wanted files
  std::uint64_t first_chunk = 0;
  std::uint64_t chunk_count = 0;
  std::uint32_t set = 0;  // ranks that want some of it
  auto operator<=>(const Reading&) const = default;
};

struct Readings {
  std::vector<WantedFile> files;                // by section, rank
  std::vector<std::vector<Reading>> of_reader;  // ascending
  std::uint64_t bytes = 0;
  std::uint64_t most_loaded_bytes = 0;
  double bound_bytes = 0;
};

// Runs are found in units of one chunk; above `units_max` chunks in all, of as many more as keeps their number below it
// (a load of 2^56 bytes must not list its chunks). corrupt: plan and manifest do not belong together.
constexpr std::uint64_t units_max = 1 << 23;
Result<Readings> assign_readings(const StoredCheckpoint& stored, const Wants& wants, HolderSets& sets,
                                 std::uint32_t world_size);

// The bytes of chunks [first, first + count) of a file.
std::uint64_t chunks_bytes(const FileRecord& file, std::uint64_t first_chunk, std::uint64_t chunk_count);

// corrupt, naming section and rank: references out of bounds, or a manifest whose files do not fit the plan.
Result<void> check_stored(const StoredCheckpoint& stored);

}  // namespace vckpt
