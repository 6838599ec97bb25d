#include "schema/names.h"

#include <algorithm>
#include <charconv>
#include <cstdio>

#include "schema/checked.h"

namespace vckpt::names {
namespace {

constexpr std::uint32_t ranks_per_folder = 1024;
constexpr std::string_view metadata_key = "__metadata__";

std::string padded(std::uint64_t number) {
  char text[32];
  std::snprintf(text, sizeof text, "%06llu", static_cast<unsigned long long>(number));
  return text;
}

std::string hex16(std::uint64_t number) {
  char text[32];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(number));
  return text;
}

std::string under(std::string_view folder, const std::string& name) { return std::string(folder) + "/" + name; }

std::string joined(const Dims& numbers) {
  std::string text;
  for (const auto number : numbers) text += (text.empty() ? "" : "x") + std::to_string(number);
  return text;
}

// `0x128`: 1..dims_max numbers as std::to_string writes them.
std::optional<Dims> parse_joined(std::string_view text) {
  Dims numbers;
  while (numbers.size() < dims_max) {
    std::uint64_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc{}) return std::nullopt;
    const auto digits = static_cast<std::size_t>(end - text.data());
    if (digits > 1 && text.front() == '0') return std::nullopt;
    numbers.push_back(number);
    text.remove_prefix(digits);
    if (text.empty()) return numbers;
    if (text.front() != 'x') return std::nullopt;
    text.remove_prefix(1);
  }
  return std::nullopt;
}

// `0x128+64x128`
std::optional<Box> parse_box(std::string_view text) {
  const auto plus = text.find('+');
  if (plus == std::string_view::npos) return std::nullopt;
  auto offsets = parse_joined(text.substr(0, plus));
  auto sizes = parse_joined(text.substr(plus + 1));
  if (!offsets || !sizes || offsets->size() != sizes->size()) return std::nullopt;
  for (std::size_t d = 0; d < offsets->size(); ++d) {
    if (!checked_add((*offsets)[d], (*sizes)[d])) return std::nullopt;
  }
  return Box{std::move(*offsets), std::move(*sizes)};
}

// `<anything>@<box>`
bool looks_like_part(std::string_view name) {
  const auto at = name.rfind('@');
  return at != std::string_view::npos && parse_box(name.substr(at + 1)).has_value();
}

bool needs_escape(std::string_view fqn) {
  return fqn.empty() || fqn.starts_with('@') || fqn == metadata_key || looks_like_part(fqn);
}

Error no_piece(std::string_view name) {
  return corrupt("no stored piece has the name '" + std::string(name.substr(0, fqn_bytes_max)) + "'");
}

}  // namespace

std::string epoch(Epoch epoch) { return under(epochs, padded(epoch.value)); }
std::string plan(const Digest& digest) { return under(plans, digest.hex()); }
std::string decision(const CheckpointId& id) { return under(decisions, id.name()); }
std::string checkpoint(const CheckpointId& id) { return under(data, id.name()); }

std::string section(const CheckpointId& id, std::string_view section) {
  VCKPT_ASSERT(check_section_name(section).has_value());
  return under(checkpoint(id), std::string(section));
}

std::string rank_folder(const FilePlace& place) {
  return under(section(place.checkpoint, place.section), std::to_string(place.rank.value / ranks_per_folder));
}

std::string data_file(const FilePlace& place) {
  return under(rank_folder(place),
               "rank-" + padded(place.rank.value) + "-" + std::to_string(place.index) + ".safetensors");
}

std::string segment(const CheckpointId& id, Epoch decided_by, Nonce nonce, std::uint32_t index) {
  return under(checkpoint(id),
               "manifest-" + padded(decided_by.value) + "-" + hex16(nonce.value) + "-" + std::to_string(index));
}

std::optional<Epoch> parse_epoch(std::string_view last_component) {
  Epoch epoch;
  const auto* end = last_component.data() + last_component.size();
  const auto [stop, error] = std::from_chars(last_component.data(), end, epoch.value);
  if (error != std::errc{} || stop != end || epoch.value == 0 || padded(epoch.value) != last_component) {
    return std::nullopt;
  }
  return epoch;
}

std::string piece(const TensorSpec& spec, const Box& box) {
  const bool escaped = needs_escape(spec.fqn);
  const bool part = box != whole(spec.shape);
  std::string name = (escaped ? "@" : "") + spec.fqn;
  if (escaped || part) name += "@";
  if (part) name += joined(box.offsets) + "+" + joined(box.sizes);
  return name;
}

Result<ParsedPiece> parse_piece(std::string_view name) {
  ParsedPiece parsed;
  const bool escaped = name.starts_with('@');
  const auto at = name.rfind('@');
  std::string_view fqn = name;
  if (escaped || looks_like_part(name)) {
    if (escaped && at == 0) return no_piece(name);
    fqn = name.substr(0, at).substr(escaped ? 1 : 0);
    parsed.box = parse_box(name.substr(at + 1));
    if (!parsed.box && at + 1 != name.size()) return no_piece(name);
  }
  if (needs_escape(fqn) != escaped || !check_fqn(fqn)) return no_piece(name);
  parsed.fqn = std::string(fqn);
  return parsed;
}

}  // namespace vckpt::names
