// Publishing records under a PosixRoot: whole and durable or not at all, and never over another. Threading and errors
// as there: calls block.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "runtime/posix_root.h"

namespace vckpt {

// How a finished record gets its name without ever replacing another one.
enum class Publishing : std::uint8_t {
  link = 1,    // link(2); where the file system has no links, as rename
  rename = 2,  // renameat2(RENAME_NOREPLACE)
};

Result<Published> publish_once(PosixRoot& root, Publishing publishing, const std::string& name,
                               std::span<const std::byte> bytes);

// Writes, names and removes a small record: invalid, naming what cannot be done here.
Result<void> probe(PosixRoot& root, Publishing publishing);

}  // namespace vckpt
