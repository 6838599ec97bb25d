// Patterns over names: `*` any text (dots included), `?` one byte, `[a-c]` and `[!a-c]` one byte of a set. A name
// always matches itself.
#pragma once

#include <string_view>

namespace vckpt {

bool glob_matches(std::string_view pattern, std::string_view name);

}  // namespace vckpt
