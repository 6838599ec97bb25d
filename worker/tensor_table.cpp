#include "worker/tensor_table.h"

#include <algorithm>
#include <map>
#include <memory>
#include <numeric>
#include <tuple>

#include "schema/codec.h"
#include "worker/state.h"

namespace vckpt {
namespace {

bool sub_byte(DType dtype) { return bits(dtype) % 8 != 0; }

Error misuse(const std::string& section, const TensorSpec& spec, const std::string& what) {
  return invalid("section '" + section + "': tensor '" + spec.fqn + "': " + what);
}

// Strides in bytes, one per dimension of the box in units.
Result<std::vector<std::int64_t>> memory_strides(const TensorSpec& spec, const Box& box, const Box& units,
                                                 const Memory& memory) {
  if (memory.strides.empty()) return dense_strides(units.sizes, unit_bytes(spec.dtype));
  if (memory.strides.size() != box.sizes.size()) {
    return invalid(std::to_string(memory.strides.size()) + " strides for the " + std::to_string(box.sizes.size()) +
                   " dimensions of box " + to_string(box));
  }
  const bool flat = units.sizes.size() != box.sizes.size();  // a scalar of any type, or sub-byte rows without borders
  if (flat && !box.sizes.empty()) return invalid("sub-byte elements whose rows end inside a byte must lie dense");
  std::vector<std::int64_t> strides;
  for (std::size_t d = 0; d < box.sizes.size(); ++d) {
    std::int64_t stride_bits = 0;
    if (__builtin_mul_overflow(memory.strides[d], static_cast<std::int64_t>(bits(spec.dtype)), &stride_bits)) {
      return invalid("stride " + std::to_string(memory.strides[d]) + " is out of bounds");
    }
    const bool last = d + 1 == box.sizes.size();
    if (sub_byte(spec.dtype) && (last ? memory.strides[d] != 1 && box.sizes[d] > 1 : stride_bits % 8 != 0)) {
      return invalid("stride " + std::to_string(memory.strides[d]) + " of sub-byte elements in dimension " +
                     std::to_string(d) + " is not a whole number of bytes");
    }
    strides.push_back(sub_byte(spec.dtype) && last ? 1 : stride_bits / 8);
  }
  return strides;
}

// The local boxes of one held piece.
Result<void> append_boxes(const TensorSpec& spec, const Held& held, const Memory& memory,
                          std::vector<LocalBox>& boxes) {
  const bool nothing = held.range ? held.range->begin == held.range->end : empty(held.box);
  if (nothing) return {};
  if (memory.data == nullptr) return invalid("no memory for box " + to_string(held.box));
  if (memory.device != Device::cpu) return invalid("memory of an unknown device");
  auto* data = static_cast<std::byte*>(memory.data);
  const Box units = to_units(spec, held.box);
  if (!held.range) {
    VCKPT_TRY(auto strides, memory_strides(spec, held.box, units, memory));
    boxes.push_back({units, {data, std::move(strides)}});
    return {};
  }
  if (!memory.strides.empty()) return invalid("a range lies dense in memory and has no strides");
  Range range = *held.range;
  if (sub_byte(spec.dtype)) {
    const bool is_whole = range.begin == 0 && range.end == elements(held.box);
    range.begin = range.begin * bits(spec.dtype) / 8;
    range.end = is_whole ? elements(units) : range.end * bits(spec.dtype) / 8;
  }
  for (auto& box : to_boxes(units, range)) {
    auto strides = dense_strides(box.sizes, unit_bytes(spec.dtype));
    const std::uint64_t length_bytes = elements(box) * unit_bytes(spec.dtype);
    boxes.push_back({std::move(box), {data, std::move(strides)}});
    data += length_bytes;
  }
  return {};
}

bool less_by_box(const LocalBox& a, const LocalBox& b) { return a.box < b.box; }

// The tensors of a section by fqn, each once; indices of `held` in the order of the body's entries.
struct Sorted {
  LayoutBody body;
  std::vector<const HeldTensor*> held;  // as body.entries
};

Result<Sorted> sort_section(const std::string& section, const std::vector<HeldTensor>& tensors) {
  std::vector<const HeldTensor*> by_name;
  for (const auto& held : tensors) by_name.push_back(&held);
  const auto key = [](const HeldTensor* held) { return std::tie(held->spec.fqn, held->box, held->cuts, held->range); };
  std::stable_sort(by_name.begin(), by_name.end(),
                   [&](const HeldTensor* a, const HeldTensor* b) { return key(a) < key(b); });
  Sorted sorted;
  for (std::size_t i = 0; i < by_name.size(); ++i) {
    const HeldTensor& held = *by_name[i];
    if (i == 0 || held.spec.fqn != by_name[i - 1]->spec.fqn) {
      sorted.body.tensors.push_back(held.spec);
    } else if (held.spec != by_name[i - 1]->spec) {
      return misuse(section, held.spec,
                    "given as '" + to_string(by_name[i - 1]->spec) + "' and as '" + to_string(held.spec) + "'");
    }
    const auto tensor = static_cast<std::uint32_t>(sorted.body.tensors.size() - 1);
    sorted.body.entries.push_back({tensor, held.box, held.cuts, held.range});
    sorted.held.push_back(&held);
  }
  return sorted;
}

Result<std::vector<Item>> sort_items(const std::string& section, const std::vector<HeldItem>& held) {
  std::vector<Item> items;
  for (const auto& item : held) {
    if (const auto name = check_fqn(item.name); !name) {
      return name.error().with_context("section '" + section + "': item");
    }
    if (item.scope == Scope::splittable && !std::holds_alternative<Value::List>(item.value.data)) {
      return invalid("section '" + section + "': item '" + item.name + "' is splittable but not a list");
    }
    if (const auto value = check_value(item.value); !value) {
      return value.error().with_context("section '" + section + "': item '" + item.name + "'");
    }
    items.push_back({section, item.name, item.scope, item.value});
  }
  std::sort(items.begin(), items.end(), [](const Item& a, const Item& b) { return a.name < b.name; });
  return items;
}

Result<SectionTable> make_section(const std::string& name, const SectionState::Contents& contents,
                                  const SectionTable* previous) {
  VCKPT_TRY_VOID(check_section_name(name));
  VCKPT_TRY(auto sorted, sort_section(name, contents.tensors));
  SectionTable table;
  table.section = name;
  table.layout.coordinates = contents.coordinates;
  const bool unchanged = previous != nullptr && *previous->layout.body == sorted.body;
  table.layout.body = unchanged ? previous->layout.body : std::make_shared<const LayoutBody>(std::move(sorted.body));
  const LayoutBody& body = *table.layout.body;
  if (const auto checked = check_layout(table.layout); !checked) {
    return checked.error().with_context("section '" + name + "'");
  }
  table.body_digest = unchanged ? previous->body_digest : digest(body);
  for (const auto& spec : body.tensors) table.tensors.push_back({spec, {}});
  for (std::size_t i = 0; i < body.entries.size(); ++i) {
    const auto& entry = body.entries[i];
    const auto& spec = body.tensors[entry.tensor];
    const auto added = append_boxes(spec, held(body, entry, table.layout.coordinates), sorted.held[i]->memory,
                                    table.tensors[entry.tensor].boxes);
    if (!added) return misuse(name, spec, added.error().message);
  }
  for (auto& tensor : table.tensors) {
    std::sort(tensor.boxes.begin(), tensor.boxes.end(), less_by_box);
    const auto twice = std::adjacent_find(tensor.boxes.begin(), tensor.boxes.end(),
                                          [](const LocalBox& a, const LocalBox& b) { return a.box == b.box; });
    if (twice != tensor.boxes.end())
      return misuse(name, tensor.spec, "box " + to_string(twice->box) + " is given twice");
  }
  VCKPT_TRY(table.items, sort_items(name, contents.items));
  return table;
}

// Appends the copies of `part` in packed order: whole when one box has it; else cut along `dim` at the borders of the
// boxes, then row by row into the next dimension.
Result<void> append_copies(const LocalTensor& tensor, const Box& part, std::size_t dim, std::vector<Copy>& result) {
  std::vector<std::uint64_t> borders;
  for (const auto& local : tensor.boxes) {
    if (contains(local.box, part)) {
      const auto found = element_copies(local.view, local.box, part, unit_bytes(tensor.spec.dtype));
      result.insert(result.end(), found.begin(), found.end());
      return {};
    }
    if (dim == part.sizes.size() || !intersect(local.box, part)) continue;
    borders.push_back(local.box.offsets[dim]);
    borders.push_back(local.box.offsets[dim] + local.box.sizes[dim]);
  }
  if (borders.empty()) {
    return internal("tensor '" + tensor.spec.fqn + "': this rank does not hold box " + to_string(part));
  }
  const std::uint64_t begin = part.offsets[dim];
  const std::uint64_t end = begin + part.sizes[dim];
  borders.push_back(end);
  std::sort(borders.begin(), borders.end());
  Box cut = part;
  const auto append = [&](std::uint64_t from, std::uint64_t to, std::size_t next_dim) {
    cut.offsets[dim] = from;
    cut.sizes[dim] = to - from;
    return append_copies(tensor, cut, next_dim, result);
  };
  const bool split = std::any_of(borders.begin(), borders.end(), [&](auto at) { return at > begin && at < end; });
  std::uint64_t from = begin;
  if (!split) {
    for (; from < end; ++from) VCKPT_TRY_VOID(append(from, from + 1, dim + 1));
    return {};
  }
  for (const auto to : borders) {
    if (to <= from || to > end) continue;
    VCKPT_TRY_VOID(append(from, to, dim));
    from = to;
  }
  return {};
}

}  // namespace

std::uint64_t unit_bytes(DType dtype) { return sub_byte(dtype) ? 1 : bits(dtype) / 8; }

Box to_units(const TensorSpec& spec, const Box& box) { return sub_byte(spec.dtype) ? to_byte_box(spec, box) : box; }

Result<Box> bytes_to_units(const TensorSpec& spec, const Box& byte_box) {
  const std::uint64_t width = unit_bytes(spec.dtype);
  if (sub_byte(spec.dtype)) return byte_box;
  Box box = byte_box;
  if (box.offsets.back() % width != 0 || box.sizes.back() % width != 0) {
    return corrupt("tensor '" + spec.fqn + "': byte box " + to_string(byte_box) + " cuts an element");
  }
  box.offsets.back() /= width;
  box.sizes.back() /= width;
  if (spec.shape.empty()) return Box{};
  return box;
}

const LocalTensor* SectionTable::find(std::string_view fqn) const {
  const auto at =
      std::lower_bound(tensors.begin(), tensors.end(), fqn,
                       [](const LocalTensor& tensor, std::string_view name) { return tensor.spec.fqn < name; });
  return at != tensors.end() && at->spec.fqn == fqn ? &*at : nullptr;
}

const SectionTable* TensorTable::find(std::string_view section) const {
  for (const auto& table : sections) {
    if (table.section == section) return &table;
  }
  return nullptr;
}

Result<TensorTable> make_tensor_table(const State& state, const TensorTable* previous) {
  TensorTable table;
  for (const auto& name : state.sections()) {
    const auto* before = previous == nullptr ? nullptr : previous->find(name);
    VCKPT_TRY(auto section, make_section(name, state.find(name)->contents(), before));
    table.sections.push_back(std::move(section));
  }
  return table;
}

Result<std::vector<Copy>> part_copies(const LocalTensor& tensor, const Box& part) {
  std::vector<Copy> result;
  if (empty(part)) return result;
  VCKPT_TRY_VOID(append_copies(tensor, part, 0, result));
  return result;
}

Result<const LocalBox*> find_target(const LocalTensor& tensor, const Box& target) {
  const auto at = std::lower_bound(tensor.boxes.begin(), tensor.boxes.end(), target,
                                   [](const LocalBox& local, const Box& box) { return local.box < box; });
  if (at != tensor.boxes.end() && at->box == target) return &*at;
  for (const auto& local : tensor.boxes) {
    if (local.box.sizes.size() == target.sizes.size() && contains(local.box, target)) return &local;
  }
  return internal("tensor '" + tensor.spec.fqn + "': this rank does not hold box " + to_string(target));
}

}  // namespace vckpt
