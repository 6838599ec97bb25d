#include "tests/simulation/trainer.h"

#include <algorithm>
#include <span>
#include <utility>

#include "schema/digest.h"
#include "tests/support/catch.h"

namespace vckpt {
namespace {

// The bytes of a box in row-major order, of a tensor whose byte at `index` is a function of index and salt.
std::vector<std::byte> box_content(const TensorSpec& spec, const Box& box, std::uint64_t salt) {
  const Box bytes = to_byte_box(spec, box);
  const Dims shape = to_byte_shape(spec);
  std::vector<std::byte> packed(elements(bytes));
  std::byte* next = packed.data();
  const std::uint64_t row_bytes = bytes.sizes.back();
  const std::uint64_t rows = row_bytes == 0 ? 0 : elements(bytes) / row_bytes;
  Dims point = bytes.offsets;
  for (std::uint64_t row = 0; row < rows; ++row) {
    std::uint64_t index = 0;
    for (std::size_t d = 0; d < point.size(); ++d) index = index * shape[d] + point[d];
    for (const std::uint64_t end = index + row_bytes; index < end; ++index) {
      *next++ = static_cast<std::byte>(((index + 1) * 0x9E3779B97F4A7C15 + salt) >> 53);
    }
    for (std::size_t d = point.size() - 1; d-- > 0;) {
      if (++point[d] < bytes.offsets[d] + bytes.sizes[d]) break;
      point[d] = bytes.offsets[d];
    }
  }
  return packed;
}

std::uint64_t salt_of(const std::string& section, const std::string& fqn, Version version) {
  const std::string text = section + ":" + fqn + ":" + std::to_string(version);
  const Digest digest = xxh3_128(std::as_bytes(std::span(text)));
  std::uint64_t salt = 0;
  for (std::size_t i = 0; i < 8; ++i) salt = salt << 8 | std::to_integer<std::uint64_t>(digest.bytes[i]);
  return salt;
}

}  // namespace

Trainer::Trainer(const std::vector<SectionPlacement>& sections, Rank rank, std::uint32_t ranks)
    : rank_(rank), ranks_(ranks) {
  for (const auto& section : sections) {
    const Layout& layout = section.placement.layouts[rank.value];
    sections_.emplace_back(section.section, layout.coordinates);
    for (const auto& entry : layout.body->entries) {
      Piece piece{section.section,
                  layout.body->tensors[entry.tensor],
                  entry,
                  held(*layout.body, entry, layout.coordinates),
                  {}};
      piece.bytes = content(piece, 0);
      pieces_.push_back(std::move(piece));
    }
  }
}

std::vector<std::byte> Trainer::content(const Piece& piece, Version version) {
  auto packed = box_content(piece.spec, piece.held.box, salt_of(piece.section, piece.spec.fqn, version));
  if (!piece.held.range) return packed;
  const auto begin = static_cast<std::ptrdiff_t>(piece.held.range->begin * bits(piece.spec.dtype) / 8);
  const auto end = static_cast<std::ptrdiff_t>(piece.held.range->end * bits(piece.spec.dtype) / 8);
  return {packed.begin() + begin, packed.begin() + end};
}

void Trainer::fill(Version version) {
  for (auto& piece : pieces_) {
    const auto bytes = content(piece, version);
    std::copy(bytes.begin(), bytes.end(), piece.bytes.begin());
  }
}

void Trainer::wreck() {
  for (auto& piece : pieces_) {
    for (std::byte *at = piece.bytes.data(), *end = at + piece.bytes.size(); at != end; ++at) *at = ~*at;
  }
}

std::vector<Item> Trainer::items(Version version) const {
  Value::List mine;
  const std::size_t share = (documents + ranks_ - 1) / ranks_;
  for (std::size_t i = share * rank_.value; i < std::min(documents, share * (rank_.value + 1)); ++i) {
    mine.push_back(Value{static_cast<std::int64_t>(version * 1000 + i)});
  }
  const auto& section = sections_.front().first;
  return {{section, "documents", Scope::splittable, Value{std::move(mine)}},
          {section, "version", Scope::replicated, Value{static_cast<std::int64_t>(version)}}};
}

std::shared_ptr<const TensorTable> Trainer::table(Version version) {
  State state;
  for (const auto& [section, coordinates] : sections_) state.section(section).at(coordinates);
  for (auto& piece : pieces_) {
    auto& section = state.section(piece.section);
    void* data = piece.bytes.empty() ? nullptr : piece.bytes.data();
    const auto& [tensor, box, cuts, range] = piece.entry;
    if (box && range) section.add(piece.spec, *box, *range, data);
    if (box && !range) section.add(piece.spec, *box, data);
    if (!box && range) section.add(piece.spec, cuts, *range, data);
    if (!box && !range) section.add(piece.spec, cuts, data);
  }
  for (auto& item : items(version)) state.section(item.section).item(item.name, std::move(item.value), item.scope);
  auto made = make_tensor_table(state, previous_.get());
  if (!made) FAIL(made.error().message);
  previous_ = std::make_shared<const TensorTable>(*std::move(made));
  return previous_;
}

std::vector<std::string> Trainer::differences(Version version) const {
  std::vector<std::string> names;
  for (const auto& piece : pieces_) {
    if (piece.bytes != content(piece, version)) {
      names.push_back(piece.section + ":" + piece.spec.fqn + " " + to_string(piece.held.box));
    }
  }
  return names;
}

std::uint64_t Trainer::held_bytes() const {
  std::uint64_t total_bytes = 0;
  for (const auto& piece : pieces_) total_bytes += piece.bytes.size();
  return total_bytes;
}

}  // namespace vckpt
