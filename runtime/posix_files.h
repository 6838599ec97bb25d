// Data files and records under a PosixRoot. Threading and errors as there: calls block.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "runtime/posix_root.h"

namespace vckpt {

// A data file being written.
struct DataFile {
  std::string name;
  std::uint64_t length_bytes = 0;
  Descriptor descriptor;
};

Result<DataFile> create_file(PosixRoot& root, const std::string& name, std::uint64_t length_bytes);
Result<void> write(PosixRoot& root, const DataFile& file, std::uint64_t offset_bytes, std::span<const std::byte> bytes);
Result<void> finish(PosixRoot& root, DataFile& file);
Result<void> abandon(PosixRoot& root, DataFile& file);

Result<std::uint64_t> file_length(PosixRoot& root, const std::string& name);
Result<void> read(PosixRoot& root, const std::string& name, std::uint64_t offset_bytes, std::span<std::byte> target);
Result<Bytes> read_record(PosixRoot& root, const std::string& name, std::uint64_t bytes_max);

}  // namespace vckpt
