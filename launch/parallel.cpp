#include "launch/parallel.h"

#include <array>
#include <charconv>
#include <utility>

#include "schema/checked.h"

namespace vckpt::launch {

namespace {

struct Axis {
  std::string_view name;
  std::uint32_t Parallel::*size;
};

constexpr std::array<Axis, 6> axes = {{{"tp", &Parallel::tp},
                                       {"cp", &Parallel::cp},
                                       {"fsdp", &Parallel::fsdp},
                                       {"dp", &Parallel::dp},
                                       {"pp", &Parallel::pp},
                                       {"ep", &Parallel::ep}}};

Error bad(std::string_view text, const std::string& why) {
  return invalid("layout '" + std::string(text) + "': " + why +
                 "; expected axes like tp=2,pp=2,dp=2,cp=1,ep=1,fsdp=1,zero=0");
}

Result<std::uint32_t> parse_size(std::string_view text, std::string_view part, std::string_view digits) {
  std::uint32_t size = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), size);
  if (error != std::errc() || end != digits.data() + digits.size()) {
    return bad(text, "'" + std::string(part) + "' has no number up to " + std::to_string(axis_max));
  }
  return size;
}

Result<void> check(std::string_view text, const Parallel& parallel) {
  std::uint64_t world = 1;
  for (const auto size : {parallel.tp, parallel.cp, parallel.fsdp, parallel.dp, parallel.pp}) {
    world *= size;  // each step is below world_max * axis_max
    if (world > world_max) return bad(text, "more than " + std::to_string(world_max) + " ranks");
  }
  if (parallel.dp % parallel.ep != 0) {
    return bad(text, "ep=" + std::to_string(parallel.ep) + " does not divide dp=" + std::to_string(parallel.dp));
  }
  return {};
}

}  // namespace

Result<Parallel> parse_parallel(std::string_view text) {
  Parallel parallel;
  std::string seen = ",";
  std::string_view rest = text;
  while (true) {
    const auto comma = rest.find(',');
    const auto part = rest.substr(0, comma);
    const auto equals = part.find('=');
    const auto name = part.substr(0, equals);
    if (part.empty() || equals == std::string_view::npos) {
      return bad(text, "'" + std::string(part) + "' is not AXIS=SIZE");
    }
    if (seen.find("," + std::string(name) + ",") != std::string::npos) {
      return bad(text, "axis " + std::string(name) + " stands twice");
    }
    seen += std::string(name) + ",";
    VCKPT_TRY(const auto size, parse_size(text, part, part.substr(equals + 1)));
    if (name == "zero") {
      if (size > 1) return bad(text, "zero is 0 or 1");
      parallel.zero = size == 1;
    } else {
      bool found = false;
      for (const auto& axis : axes) {
        if (axis.name != name) continue;
        if (size == 0 || size > axis_max) {
          return bad(text, std::string(part) + " is not in 1.." + std::to_string(axis_max));
        }
        parallel.*axis.size = size;
        found = true;
      }
      if (!found) return bad(text, "unknown axis '" + std::string(name) + "'");
    }
    if (comma == std::string_view::npos) break;
    rest.remove_prefix(comma + 1);
  }
  VCKPT_TRY_VOID(check(text, parallel));
  return parallel;
}

std::string to_string(const Parallel& parallel) {
  std::string text;
  for (const auto& axis : axes) {
    if (parallel.*axis.size == 1) continue;
    text += (text.empty() ? "" : ",") + std::string(axis.name) + "=" + std::to_string(parallel.*axis.size);
  }
  if (parallel.zero) text += text.empty() ? "zero=1" : ",zero=1";
  return text.empty() ? "dp=1" : text;
}

Position position(const Parallel& parallel, Rank rank) {
  auto rest = rank.value;
  const auto next = [&rest](std::uint32_t size) {
    const auto index = rest % size;
    rest /= size;
    return index;
  };
  Position position;
  position.tp = next(parallel.tp);
  position.cp = next(parallel.cp);
  position.fsdp = next(parallel.fsdp);
  position.dp = next(parallel.dp);
  position.pp = next(parallel.pp);
  return position;
}

}  // namespace vckpt::launch
