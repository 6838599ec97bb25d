#include "schema/layout.h"

#include <algorithm>
#include <string_view>
#include <unordered_set>

#include "schema/checked.h"

namespace vckpt {
namespace {

constexpr std::uint64_t bytes_max = 0x7FFFFFFFFFFFFFFF;

bool well_formed_utf8(std::string_view text) {
  std::size_t i = 0;
  while (i < text.size()) {
    const auto lead = static_cast<unsigned char>(text[i]);
    std::size_t extra = 0;
    std::uint32_t point = 0;
    if (lead < 0x80) {
      ++i;
      continue;
    }
    if (lead >= 0xC2 && lead <= 0xDF) {
      extra = 1;
      point = lead & 0x1F;
    } else if (lead >= 0xE0 && lead <= 0xEF) {
      extra = 2;
      point = lead & 0x0F;
    } else if (lead >= 0xF0 && lead <= 0xF4) {
      extra = 3;
      point = lead & 0x07;
    } else {
      return false;
    }
    if (text.size() - i <= extra) return false;
    for (std::size_t k = 1; k <= extra; ++k) {
      const auto next = static_cast<unsigned char>(text[i + k]);
      if ((next & 0xC0) != 0x80) return false;
      point = (point << 6) | (next & 0x3F);
    }
    const bool overlong = (extra == 2 && point < 0x800) || (extra == 3 && point < 0x10000);
    if (overlong || point > 0x10FFFF || (point >= 0xD800 && point <= 0xDFFF)) return false;
    i += extra + 1;
  }
  return true;
}

Result<void> check_tensor(const TensorSpec& spec) {
  VCKPT_TRY_VOID(check_fqn(spec.fqn));
  if (const auto shape = check_shape(spec.shape); !shape)
    return shape.error().with_context("tensor '" + spec.fqn + "'");
  if (!shape_bytes(spec.dtype, spec.shape)) {
    return invalid("tensor '" + spec.fqn + "': shape " + to_string(spec.shape) + " has too many bytes");
  }
  return {};
}

Result<void> check_cuts(const TensorSpec& spec, const Entry& entry, const Coordinates& coordinates) {
  for (const auto& cut : entry.cuts) {
    const std::string where = "tensor '" + spec.fqn + "': cut along dimension " + std::to_string(cut.dim);
    if (cut.dim >= spec.shape.size()) return invalid(where + " of shape " + to_string(spec.shape));
    if (cut.parts == 0) return invalid(where + " into 0 parts");
    if (cut.slot >= coordinates.size()) {
      return invalid(where + " by slot " + std::to_string(cut.slot) + ", but there are " +
                     std::to_string(coordinates.size()) + " coordinates");
    }
    if (coordinates[cut.slot] >= cut.parts) {
      return invalid(where + ": coordinate " + std::to_string(coordinates[cut.slot]) + " of " +
                     std::to_string(cut.parts) + " parts");
    }
  }
  return {};
}

Result<void> check_entry(const TensorSpec& spec, const LayoutBody& body, const Entry& entry,
                         const Coordinates& coordinates) {
  if (entry.box) {
    if (const auto box = check_box(*entry.box, spec.shape); !box) {
      return box.error().with_context("tensor '" + spec.fqn + "'");
    }
  }
  VCKPT_TRY_VOID(check_cuts(spec, entry, coordinates));
  const Box box = cut_box(body, entry, coordinates);
  if (entry.range && (entry.range->begin > entry.range->end || entry.range->end > elements(box))) {
    return invalid("tensor '" + spec.fqn + "': range " + to_string(*entry.range) + " leaves box " + to_string(box) +
                   " of " + std::to_string(elements(box)) + " elements");
  }
  if (bits(spec.dtype) % 8 == 0) return {};
  const bool is_whole =
      box == whole(spec.shape) && (!entry.range || (entry.range->begin == 0 && entry.range->end == elements(box)));
  if (is_whole || empty(box)) return {};
  bool aligned = byte_aligned(spec, box);
  if (aligned && entry.range) {
    aligned = entry.range->begin * bits(spec.dtype) % 8 == 0 && entry.range->end * bits(spec.dtype) % 8 == 0;
  }
  if (!aligned) {
    return invalid("tensor '" + spec.fqn + "': box " + to_string(box) + " of " + std::string(to_string(spec.dtype)) +
                   " elements begins or ends inside a byte");
  }
  return {};
}

}  // namespace

Box cut_box(const LayoutBody& body, const Entry& entry, const Coordinates& coordinates) {
  Box box = entry.box ? *entry.box : whole(body.tensors[entry.tensor].shape);
  for (const auto& step : entry.cuts) box = cut(box, step.dim, step.parts, coordinates[step.slot]);
  return box;
}

Held held(const LayoutBody& body, const Entry& entry, const Coordinates& coordinates) {
  return Held{entry.tensor, cut_box(body, entry, coordinates), entry.range};
}

Result<void> check_layout(const Layout& layout) {
  const LayoutBody& body = *layout.body;
  if (body.tensors.size() > tensors_max) {
    return exhausted("a layout lists " + std::to_string(body.tensors.size()) + " tensors; at most " +
                     std::to_string(tensors_max));
  }
  std::unordered_set<std::string_view> names;
  for (const auto& spec : body.tensors) {
    VCKPT_TRY_VOID(check_tensor(spec));
    if (!names.insert(spec.fqn).second) return invalid("tensor '" + spec.fqn + "' is listed twice");
  }
  for (const auto& entry : body.entries) {
    if (entry.tensor >= body.tensors.size()) {
      return invalid("a layout entry names tensor number " + std::to_string(entry.tensor) + " of " +
                     std::to_string(body.tensors.size()));
    }
    VCKPT_TRY_VOID(check_entry(body.tensors[entry.tensor], body, entry, layout.coordinates));
  }
  return {};
}

std::uint64_t box_bytes(DType dtype, const Box& box) {
  const std::uint64_t count = elements(box);
  const std::uint64_t width = bits(dtype);
  if (width % 8 == 0) return count * (width / 8);
  return count / 8 * width + divide_up(count % 8 * width, 8);
}

std::optional<std::uint64_t> shape_bytes(DType dtype, const Dims& shape) {
  const auto count = checked_product(shape);
  if (!count) return std::nullopt;
  const auto whole_bytes = checked_multiply(divide_up(*count, 8), bits(dtype));  // eight elements fill `bits` bytes
  if (!whole_bytes || *whole_bytes > bytes_max) return std::nullopt;
  return box_bytes(dtype, whole(shape));
}

bool byte_aligned(const TensorSpec& spec, const Box& box) {
  const std::uint64_t width = bits(spec.dtype);
  if (width % 8 == 0) return true;
  if (box.sizes.empty()) return false;
  return spec.shape.back() * width % 8 == 0 && box.offsets.back() * width % 8 == 0 && box.sizes.back() * width % 8 == 0;
}

Dims to_byte_shape(const TensorSpec& spec) { return to_byte_box(spec, whole(spec.shape)).sizes; }

Box to_byte_box(const TensorSpec& spec, const Box& box) {
  const std::uint64_t width = bits(spec.dtype);
  // A sub-byte tensor whose rows end inside a byte is only ever held whole: one flat run of bytes.
  if (width % 8 != 0 && !byte_aligned(spec, whole(spec.shape))) return Box{{0}, {box_bytes(spec.dtype, box)}};
  Box bytes = box;
  if (bytes.sizes.empty()) {
    bytes.offsets.push_back(0);
    bytes.sizes.push_back(width / 8);
    return bytes;
  }
  bytes.offsets.back() = bytes.offsets.back() * width / 8;
  bytes.sizes.back() = bytes.sizes.back() * width / 8;
  return bytes;
}

Result<void> check_section_name(std::string_view name) {
  const bool fits = !name.empty() && name.size() <= 64;
  const auto allowed = [](char c) {
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
  };
  if (fits && std::all_of(name.begin(), name.end(), allowed)) return {};
  return invalid("section name '" + std::string(name.substr(0, 80)) + "' does not match [A-Za-z0-9_-]{1,64}");
}

Result<void> check_fqn(std::string_view fqn) {
  if (fqn.size() > fqn_bytes_max) {
    return invalid("tensor name '" + std::string(fqn.substr(0, 64)) + "...' has " + std::to_string(fqn.size()) +
                   " bytes; at most " + std::to_string(fqn_bytes_max));
  }
  if (!well_formed_utf8(fqn)) {
    std::string escaped;
    static constexpr char digits[] = "0123456789abcdef";
    for (const char c : fqn.substr(0, 64)) {
      const auto byte = static_cast<unsigned char>(c);
      if (byte >= 0x20 && byte < 0x7F) {
        escaped.push_back(c);
      } else {
        escaped += {'\\', 'x', digits[byte >> 4], digits[byte & 15]};
      }
    }
    return invalid("tensor name '" + escaped + "' is not UTF-8");
  }
  return {};
}

std::string to_string(const TensorSpec& spec) {
  return spec.fqn + " " + std::string(to_string(spec.dtype)) + " " + to_string(spec.shape);
}

}  // namespace vckpt
