// Names of a Storage: relative, made of plain components, so that none can mean a place outside the root.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "schema/result.h"

namespace vckpt {

constexpr std::size_t name_components_max = 32;
constexpr std::size_t name_component_bytes_max = 255;

// What a crash may leave half written: never listed, never read by name, and free to be swept. All temporary names
// match.
inline constexpr std::string_view temporary_prefix = ".vckpt-tmp-";
std::string temporary_name();  // random

// The components of a name; none for the empty one, which is the root. invalid, naming it: empty components, `.`, `..`,
// temporary ones, zero bytes, and more or longer ones than the bounds.
Result<std::vector<std::string>> split_name(const std::string& name);

}  // namespace vckpt
