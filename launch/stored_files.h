// The data files of a committed checkpoint: where every piece lies, and reading with every chunk checked.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "coordinator/catalog/lineage.h"
#include "runtime/blocking_storage.h"
#include "schema/digest.h"
#include "schema/plan.h"
#include "schema/result.h"

namespace vckpt::launch {

struct StoredFile {
  FilePlace place;
  std::string name;  // below the root
  FileRecord record;
  const SectionPlan* section = nullptr;  // of the metadata that the file was made from
  std::vector<PlacedPiece> pieces;       // in file order

  std::uint64_t file_bytes() const { return record.header_bytes + record.data_bytes; }
};

// All files, by section and rank. The metadata outlives them. corrupt: plan and manifest name different files or sizes.
Result<std::vector<StoredFile>> stored_files(const CheckpointMetadata& metadata);

// `fqn box` of the first piece that lies in [begin, end) of the data, and how many more do.
std::string pieces_text(const StoredFile& file, std::uint64_t begin_bytes, std::uint64_t end_bytes);

// What is wrong with a file. `chunk` is header_chunk for the header.
struct Damage {
  std::string section;
  Rank rank;
  std::string file;
  std::uint64_t chunk = 0;
  std::string pieces;  // as pieces_text; empty for the header, and where the whole file is meant
  std::string what;
};
std::string to_string(const Damage& damage);

// invalid data never leaves here: `take(begin_bytes, bytes)` gets runs of whole, checked chunks in ascending order,
// counted from the data start; `damaged` all that does not pass, which take does not get. An error is one of storage.
Result<void> read_checked(BlockingStorage& storage, const StoredFile& file,
                          const std::function<Result<void>(std::uint64_t, std::span<const std::byte>)>& take,
                          const std::function<void(Damage)>& damaged);

// The length alone: what can be known without reading the data.
Result<void> check_length(BlockingStorage& storage, const StoredFile& file, const std::function<void(Damage)>& damaged);

}  // namespace vckpt::launch
