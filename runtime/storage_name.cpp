#include "runtime/storage_name.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <random>

namespace vckpt {
namespace {

// Why this may not be a component; empty when it may.
std::string_view refusal(std::string_view component) {
  if (component.empty() || component == "." || component == "..") return "is no name inside the root";
  if (component.find('\0') != std::string_view::npos) return "holds a zero byte";
  if (component.size() > name_component_bytes_max) return "has a component of more than 255 bytes";
  if (component.starts_with(temporary_prefix)) return "is temporary by its form";
  return {};
}

}  // namespace

std::string temporary_name() {
  std::random_device random;
  std::array<char, 17> digits{};
  std::snprintf(digits.data(), digits.size(), "%08x%08x", random(), random());
  return std::string(temporary_prefix) + digits.data();
}

Result<std::vector<std::string>> split_name(const std::string& name) {
  std::vector<std::string> components;
  if (name.empty()) return components;
  for (std::size_t begin = 0; begin <= name.size();) {
    const std::size_t end = std::min(name.find('/', begin), name.size());
    components.push_back(name.substr(begin, end - begin));
    if (const auto why = refusal(components.back()); !why.empty()) {
      return invalid("name '" + name + "' " + std::string(why));
    }
    if (components.size() > name_components_max) return invalid("name '" + name + "' has more than 32 components");
    begin = end + 1;
  }
  return components;
}

}  // namespace vckpt
