// Who holds what: layouts as bodies plus coordinates. A body lists tensors and how each is cut; the coordinates of a
// rank say which part of every cut it holds. Ranks that differ only in coordinates share a body and its digest, so
// thousands of ranks cost a few bodies. Nothing here has an address.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "box.h"
#include "dtype.h"
#include "ids.h"
#include "result.h"

namespace vckpt {

constexpr std::size_t fqn_bytes_max = 4096;
constexpr std::uint64_t tensors_max = 4'000'000;       // of one section
constexpr std::uint64_t descriptors_max = 64'000'000;  // that are enumerated, of one section

struct TensorSpec {
  std::string fqn;  // opaque UTF-8, at most fqn_bytes_max bytes; safetensors files have empty ones too
  DType dtype = DType::u8;
  Dims shape;  // global
  auto operator<=>(const TensorSpec&) const = default;
};

// Keep part `coordinates[slot]` of `parts` ceil-sized chunks along `dim`.
struct Cut {
  std::uint32_t dim = 0;
  std::uint32_t parts = 1;
  std::uint32_t slot = 0;
  auto operator<=>(const Cut&) const = default;
};

// One piece of one tensor: start from `box` (the whole tensor without one), apply the cuts from left to right, then
// keep the flat `range` of what is left.
struct Entry {
  std::uint32_t tensor = 0;  // index into LayoutBody::tensors
  std::optional<Box> box;
  std::vector<Cut> cuts;
  std::optional<Range> range;
  auto operator<=>(const Entry&) const = default;
};

struct LayoutBody {
  std::vector<TensorSpec> tensors;
  std::vector<Entry> entries;
  bool operator==(const LayoutBody&) const = default;
};

using Coordinates = std::vector<std::uint32_t>;  // one index per slot

// What one rank holds of one section.
struct Layout {
  std::shared_ptr<const LayoutBody> body;  // never null; may be empty
  Coordinates coordinates;
};

// What every rank holds of one section; rank r is layouts[r].
struct Placement {
  std::vector<Layout> layouts;
};

// A held piece as the planner and the worker see it: a box, or a flat range of a box.
struct Held {
  std::uint32_t tensor = 0;
  Box box;
  std::optional<Range> range;
  auto operator<=>(const Held&) const = default;
};

// The box that an entry's cuts leave at these coordinates. The body must be valid.
Box cut_box(const LayoutBody& body, const Entry& entry, const Coordinates& coordinates);
Held held(const LayoutBody& body, const Entry& entry, const Coordinates& coordinates);

// invalid, naming the fqn: a name that is too long or not UTF-8, a shape that check_shape refuses, a tensor
// index, slot, dimension, box or range out of bounds, cuts of zero parts, a coordinate >= parts, one fqn listed twice,
// and sub-byte tensors cut inside a byte.
Result<void> check_layout(const Layout& layout);

// Bytes of a box of this type; sub-byte types are rounded up to whole bytes over the whole box.
std::uint64_t box_bytes(DType dtype, const Box& box);
// nullopt when the byte count of the shape does not fit in 63 bits.
std::optional<std::uint64_t> shape_bytes(DType dtype, const Dims& shape);

// The same box with the last dimension counted in bytes (a scalar becomes one dimension): how slices are cut and
// copied. Sub-byte boxes must lie on byte borders (byte_aligned), or be the whole tensor, which becomes one flat
// dimension.
Box to_byte_box(const TensorSpec& spec, const Box& box);
Dims to_byte_shape(const TensorSpec& spec);
bool byte_aligned(const TensorSpec& spec, const Box& box);

// 1..64 characters of [A-Za-z0-9_-]; otherwise invalid.
Result<void> check_section_name(std::string_view name);
// invalid unless at most fqn_bytes_max bytes of well-formed UTF-8.
Result<void> check_fqn(std::string_view fqn);

std::string to_string(const TensorSpec& spec);  // `layers.0.wq bf16 [4096, 4096]`

}  // namespace vckpt
