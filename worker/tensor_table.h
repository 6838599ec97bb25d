// What this rank holds, checked and sorted: per section the layout that travels (body, coordinates, digest) and the
// memory behind it. Ranges become boxes here, consecutive in their buffer. Boxes are kept in units: elements for types
// of whole bytes, bytes (to_byte_box) for sub-byte types, so that every copy is a strided copy of whole units.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/memory.h"
#include "schema/item.h"
#include "schema/layout.h"
#include "schema/result.h"
#include "vckpt/worker.h"

namespace vckpt {

std::uint64_t unit_bytes(DType dtype);
// A box of elements in units.
Box to_units(const TensorSpec& spec, const Box& box);
// A byte box (slice_boxes) in units. Borders lie on whole elements; corrupt, naming the tensor, when they do not.
Result<Box> bytes_to_units(const TensorSpec& spec, const Box& byte_box);

// A box in units and where it lies.
struct LocalBox {
  Box box;
  View view;
};

struct LocalTensor {
  TensorSpec spec;
  std::vector<LocalBox> boxes;  // not empty ones only; sorted by box, each once
};

struct SectionTable {
  std::string section;
  Layout layout;  // tensors sorted by fqn, entries sorted
  Digest body_digest;
  std::vector<LocalTensor> tensors;  // as layout.body->tensors
  std::vector<Item> items;           // sorted by name

  const LocalTensor* find(std::string_view fqn) const;
};

struct TensorTable {
  std::vector<SectionTable> sections;  // sorted by name

  const SectionTable* find(std::string_view section) const;
};

// invalid, naming section and fqn: what check_layout refuses, one name with two types or shapes, one piece given twice,
// strides that do not fit, no memory. Bodies that equal those of `previous` (may be null) are shared with their
// digests: a steady state hashes nothing.
Result<TensorTable> make_tensor_table(const State& state, const TensorTable* previous);

// The copies between the memory of `part` (in units) and its packed bytes, in packed order. A part may span several
// local boxes; internal, naming fqn and box, when some of it is not held.
Result<std::vector<Copy>> part_copies(const LocalTensor& tensor, const Box& part);

// The local box that is `target` (in units), or one that contains it; internal when none does.
Result<const LocalBox*> find_target(const LocalTensor& tensor, const Box& target);

}  // namespace vckpt
