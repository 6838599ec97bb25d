// Tensor tables, entries, pieces and layout bodies as columns.
#include "schema/checked.h"
#include "schema/codec_columns.h"
#include "schema/digest.h"

namespace vckpt::wire {
namespace {

constexpr std::uint8_t has_box = 1;
constexpr std::uint8_t has_range = 2;

const TensorSpec& tensor_of(std::uint32_t index, const std::vector<TensorSpec>& tensors) {
  if (index >= tensors.size()) {
    malformed("tensor index " + std::to_string(index) + " of " + std::to_string(tensors.size()));
  }
  return tensors[index];
}

void check(const Entry& entry, const TensorSpec& spec) {
  if (entry.box) require(check_box(*entry.box, spec.shape));
  for (const auto& cut : entry.cuts) {
    require(cut.dim < spec.shape.size(), "cut along a dimension that the tensor lacks");
    require(cut.parts > 0, "cut into 0 parts");
  }
  if (entry.range) {
    const auto count = elements(entry.box ? *entry.box : whole(spec.shape));
    require(entry.range->begin <= entry.range->end && entry.range->end <= count, "range out of bounds");
  }
}

}  // namespace

void write(Tensors::Builder builder, const std::vector<const TensorSpec*>& tensors) {
  std::string dtypes;
  std::string counts;
  Numbers64 sizes;
  for (const auto* tensor : tensors) {
    VCKPT_ASSERT(tensor->shape.size() <= dims_max);
    dtypes.push_back(static_cast<char>(tensor->dtype));
    counts.push_back(static_cast<char>(tensor->shape.size()));
    sizes.insert(sizes.end(), tensor->shape.begin(), tensor->shape.end());
  }
  write_names(builder.initFqns(), tensors, [](const TensorSpec* tensor) -> std::string_view { return tensor->fqn; });
  builder.setDtypes(blob(dtypes));
  builder.setDimCounts(blob(counts));
  fill(builder.initSizes(list_size(sizes.size())), sizes);
}

std::vector<TensorSpec> read(Tensors::Reader reader) {
  auto fqns = within("fqns", [&] { return read(reader.getFqns()); });
  const auto dtypes = reader.getDtypes();
  const auto counts = reader.getDimCounts();
  const auto sizes = numbers_of<std::uint64_t>(reader.getSizes());
  require(dtypes.size() == fqns.size() && counts.size() == fqns.size(), "columns of unequal length");
  std::span<const std::uint64_t> rest = sizes;
  std::vector<TensorSpec> tensors;
  tensors.reserve(fqns.size());
  for (std::size_t i = 0; i < fqns.size(); ++i) {
    require(check_fqn(fqns[i]));
    const std::string where = "tensor '" + fqns[i] + "'";
    within(where, [&] {
      const auto dtype = dtype_from_number(dtypes[i]);
      require(dtype.has_value(), "dtype: no such number");
      const auto shape = take(rest, counts[i], "sizes");
      tensors.push_back(TensorSpec{std::move(fqns[i]), *dtype, {shape.begin(), shape.end()}});
      require(check_shape(tensors.back().shape));
      require(shape_bytes(*dtype, tensors.back().shape).has_value(), "shape: too many bytes");
    });
  }
  require(rest.empty(), "sizes: more than the shapes have");
  return tensors;
}

void require_sorted(const std::vector<TensorSpec>& tensors) {
  for (std::size_t i = 1; i < tensors.size(); ++i) {
    if (tensors[i - 1].fqn >= tensors[i].fqn) malformed("tensor '" + tensors[i].fqn + "': not sorted, or listed twice");
  }
}

void write(Entries::Builder builder, const std::vector<Entry>& entries) {
  Numbers32 tensors, cut_counts, cuts;
  Numbers64 ranges;
  std::string parts;
  std::vector<const Box*> boxes;
  for (const auto& entry : entries) {
    tensors.push_back(entry.tensor);
    parts.push_back(static_cast<char>((entry.box ? has_box : 0) | (entry.range ? has_range : 0)));
    if (entry.box) boxes.push_back(&*entry.box);
    cut_counts.push_back(list_size(entry.cuts.size()));
    for (const auto& cut : entry.cuts) cuts.insert(cuts.end(), {cut.dim, cut.parts, cut.slot});
    if (entry.range) ranges.insert(ranges.end(), {entry.range->begin, entry.range->end});
  }
  fill(builder.initTensors(list_size(tensors.size())), tensors);
  builder.setParts(blob(parts));
  write(builder.initBoxes(), boxes);
  fill(builder.initCutCounts(list_size(cut_counts.size())), cut_counts);
  fill(builder.initCuts(list_size(cuts.size())), cuts);
  fill(builder.initRanges(list_size(ranges.size())), ranges);
}

std::vector<Entry> read(Entries::Reader reader, const std::vector<TensorSpec>& specs) {
  const auto tensors = reader.getTensors();
  const auto parts = reader.getParts();
  auto boxes = within("boxes", [&] { return read(reader.getBoxes()); });
  const auto cut_counts = reader.getCutCounts();
  const auto all_cuts = numbers_of<std::uint32_t>(reader.getCuts());
  const auto all_ranges = numbers_of<std::uint64_t>(reader.getRanges());
  require(parts.size() == tensors.size() && cut_counts.size() == tensors.size(), "columns of unequal length");
  std::span<const std::uint32_t> cuts = all_cuts;
  std::span<const std::uint64_t> ranges = all_ranges;
  std::size_t next_box = 0;
  std::vector<Entry> entries;
  entries.reserve(tensors.size());
  for (unsigned i = 0; i < tensors.size(); ++i) {
    const auto& spec = tensor_of(tensors[i], specs);
    within("tensor '" + spec.fqn + "'", [&] {
      Entry entry;
      entry.tensor = tensors[i];
      require(parts[i] <= (has_box | has_range), "parts: no such number");
      if (parts[i] & has_box) {
        require(next_box < boxes.size(), "boxes: too short");
        entry.box = std::move(boxes[next_box++]);
      }
      const auto numbers = take(cuts, std::uint64_t{3} * cut_counts[i], "cuts");
      entry.cuts.reserve(cut_counts[i]);
      for (std::size_t k = 0; k < numbers.size(); k += 3) {
        entry.cuts.push_back(Cut{numbers[k], numbers[k + 1], numbers[k + 2]});
      }
      if (parts[i] & has_range) {
        const auto range = take(ranges, 2, "ranges");
        entry.range = Range{range[0], range[1]};
      }
      check(entry, spec);
      entries.push_back(std::move(entry));
    });
  }
  require(next_box == boxes.size() && cuts.empty() && ranges.empty(), "boxes, cuts or ranges that belong to no entry");
  return entries;
}

void write(Pieces::Builder builder, const std::vector<const Piece*>& pieces) {
  Numbers32 tensors;
  std::vector<const Box*> boxes;
  for (const auto* piece : pieces) {
    tensors.push_back(piece->tensor);
    boxes.push_back(&piece->box);
  }
  fill(builder.initTensors(list_size(tensors.size())), tensors);
  write(builder.initBoxes(), boxes);
}

std::vector<Piece> read(Pieces::Reader reader, const std::vector<TensorSpec>& specs) {
  const auto tensors = reader.getTensors();
  auto boxes = within("boxes", [&] { return read(reader.getBoxes()); });
  require(boxes.size() == tensors.size(), "columns of unequal length");
  std::vector<Piece> pieces;
  pieces.reserve(boxes.size());
  for (unsigned i = 0; i < tensors.size(); ++i) {
    const auto& spec = tensor_of(tensors[i], specs);
    within("tensor '" + spec.fqn + "'", [&] {
      require(check_box(boxes[i], spec.shape));
      require(!empty(boxes[i]), "an empty piece");
    });
    pieces.push_back(Piece{tensors[i], std::move(boxes[i])});
  }
  return pieces;
}

void write(LayoutBody::Builder builder, const vckpt::LayoutBody& body) {
  write(builder.initTensors(), pointers(body.tensors));
  write(builder.initEntries(), body.entries);
}

vckpt::LayoutBody read(LayoutBody::Reader reader) {
  vckpt::LayoutBody body;
  body.tensors = within("tensors", [&] { return read(reader.getTensors()); });
  body.entries = within("entries", [&] { return read(reader.getEntries(), body.tensors); });
  return body;
}

}  // namespace vckpt::wire

namespace vckpt {

Bytes encode(const LayoutBody& body) {
  return wire::encode_as<wire::LayoutBody>(body, [](auto builder, const auto& value) { wire::write(builder, value); });
}

Result<LayoutBody> decode_body(std::span<const std::byte> bytes) {
  return wire::decode_as<wire::LayoutBody, LayoutBody>("layout body", bytes,
                                                       [](auto reader) { return wire::read(reader); });
}

Digest digest(const LayoutBody& body) { return xxh3_128(encode(body)); }

}  // namespace vckpt
