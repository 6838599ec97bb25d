// The process's limit of open descriptors. A server that meets it hangs its newcomers, so it is looked at beforehand.
#pragma once

#include <cstdint>

namespace vckpt {

// Raises the soft limit to the hard one; the limit that holds then.
std::uint64_t raise_open_files_max();

}  // namespace vckpt
