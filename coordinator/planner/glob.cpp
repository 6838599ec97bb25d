#include "coordinator/planner/glob.h"

#include <cstddef>

namespace vckpt {
namespace {

// Length of the set that begins at `pattern[0] == '['`, brackets included; 0 when it never ends.
std::size_t set_length(std::string_view pattern) {
  const std::size_t first = pattern.size() > 1 && pattern[1] == '!' ? 3 : 2;  // a `]` right at the begin is a member
  const auto end = first < pattern.size() ? pattern.find(']', first) : std::string_view::npos;
  return end == std::string_view::npos ? 0 : end + 1;
}

bool in_set(std::string_view set, char c) {
  set = set.substr(1, set.size() - 2);
  const bool negated = !set.empty() && set.front() == '!';
  if (negated) set.remove_prefix(1);
  bool found = false;
  for (std::size_t i = 0; i < set.size(); ++i) {
    if (i + 2 < set.size() && set[i + 1] == '-') {
      found = found || (set[i] <= c && c <= set[i + 2]);
      i += 2;
    } else {
      found = found || set[i] == c;
    }
  }
  return found != negated;
}

// Bytes of the pattern that match one byte of the name; 0 when it does not match.
std::size_t match_one(std::string_view pattern, char c) {
  if (pattern.front() == '[') {
    if (const auto length = set_length(pattern)) return in_set(pattern.substr(0, length), c) ? length : 0;
  }
  return pattern.front() == '?' || pattern.front() == c ? 1 : 0;
}

}  // namespace

bool glob_matches(std::string_view pattern, std::string_view name) {
  if (pattern == name) return true;
  std::size_t p = 0;
  std::size_t n = 0;
  std::size_t star = std::string_view::npos;
  std::size_t resume = 0;
  while (n < name.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      resume = n;
      continue;
    }
    const std::size_t step = p < pattern.size() ? match_one(pattern.substr(p), name[n]) : 0;
    if (step != 0) {
      p += step;
      ++n;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      n = ++resume;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

}  // namespace vckpt
