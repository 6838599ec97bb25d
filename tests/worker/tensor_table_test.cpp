#include "worker/tensor_table.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <random>
#include <vector>

#include "schema/slice.h"
#include "tests/support/catch.h"

namespace vckpt {
namespace {

using Random = std::mt19937_64;

std::uint64_t below(Random& random, std::uint64_t limit) { return limit == 0 ? 0 : random() % limit; }

// The flat index of a point of a tensor.
std::uint64_t flat(const Dims& shape, const Dims& point) {
  std::uint64_t index = 0;
  for (std::size_t d = 0; d < shape.size(); ++d) index = index * shape[d] + point[d];
  return index;
}

// Calls `visit(point)` for the points of a box in row-major order.
template <typename Visit>
void each_point(const Box& box, Visit visit) {
  Dims point = box.offsets;
  const std::uint64_t count = elements(box);
  for (std::uint64_t i = 0; i < count; ++i) {
    visit(point);
    for (std::size_t d = point.size(); d-- > 0;) {
      if (++point[d] < box.offsets[d] + box.sizes[d]) break;
      point[d] = box.offsets[d];
    }
  }
}

// The content of element `index` of every test tensor.
std::uint32_t content(std::uint64_t index) { return static_cast<std::uint32_t>(index * 2654435761U + 17); }

Box random_box(Random& random, const Box& within) {
  Box box = within;
  for (std::size_t d = 0; d < box.sizes.size(); ++d) {
    const auto size = 1 + below(random, within.sizes[d]);
    box.offsets[d] = within.offsets[d] + below(random, within.sizes[d] - size + 1);
    box.sizes[d] = size;
  }
  return box;
}

Dims random_shape(Random& random) {
  Dims shape(below(random, 5));
  for (auto& size : shape) size = 1 + below(random, 6);
  return shape;
}

// Memory of one piece with random strides, filled with the tensor's content.
struct Strided {
  std::vector<std::uint32_t> buffer;
  Memory memory;
};

Strided make_strided(Random& random, const Dims& shape, const Box& box) {
  // A random order of dimensions, some padding, some reversed.
  std::vector<std::size_t> order(box.sizes.size());
  for (std::size_t d = 0; d < order.size(); ++d) order[d] = d;
  std::shuffle(order.begin(), order.end(), random);
  std::vector<std::int64_t> strides(order.size());
  std::int64_t next = 1 + static_cast<std::int64_t>(below(random, 2));
  std::int64_t first = 0;
  for (const auto d : order) {
    const auto size = static_cast<std::int64_t>(box.sizes[d]);
    strides[d] = next;
    next = next * size + static_cast<std::int64_t>(below(random, 3));
    if (below(random, 4) != 0) continue;
    first += strides[d] * (size - 1);
    strides[d] = -strides[d];
  }
  Strided strided;
  strided.buffer.resize(static_cast<std::size_t>(next) + 1, 0xDEADBEEF);
  const auto place = [&](const Dims& point) {
    std::int64_t at = first;
    for (std::size_t d = 0; d < point.size(); ++d) {
      at += strides[d] * static_cast<std::int64_t>(point[d] - box.offsets[d]);
    }
    return static_cast<std::size_t>(at);
  };
  each_point(box, [&](const Dims& point) { strided.buffer[place(point)] = content(flat(shape, point)); });
  strided.memory = Memory(strided.buffer.data() + first, strides);
  return strided;
}

std::vector<std::uint32_t> expected(const Dims& shape, const Box& part) {
  std::vector<std::uint32_t> values;
  each_point(part, [&](const Dims& point) { values.push_back(content(flat(shape, point))); });
  return values;
}

std::vector<std::uint32_t> gathered(const LocalTensor& tensor, const Box& part) {
  const auto copies = part_copies(tensor, part);
  REQUIRE(copies.has_value());
  std::vector<std::uint32_t> values(elements(part), 0);
  REQUIRE(packed_bytes(*copies) == values.size() * 4);
  gather(*copies, std::as_writable_bytes(std::span(values)));
  return values;
}

TEST_CASE("parts of strided boxes are gathered element by element as an oracle does", "[tensor_table]") {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    CAPTURE(seed);
    Random random(seed);
    const Dims shape = random_shape(random);
    const Box box = random_box(random, whole(shape));
    auto strided = make_strided(random, shape, box);
    State state;
    state.section("model").add({"w", DType::u32, shape}, box, strided.memory);
    const auto table = make_tensor_table(state, nullptr);
    REQUIRE(table.has_value());
    const auto& tensor = table->sections[0].tensors[0];
    const Box part = random_box(random, box);
    REQUIRE(gathered(tensor, part) == expected(shape, part));
    // And back: what is scattered stands where it was.
    const auto before = strided.buffer;
    auto copies = part_copies(tensor, part);
    std::vector<std::uint32_t> packed = expected(shape, part);
    for (auto& value : packed) ++value;
    scatter(std::as_bytes(std::span(packed)), *copies);
    std::size_t changed = 0;
    for (std::size_t i = 0; i < before.size(); ++i) {
      if (strided.buffer[i] == before[i]) continue;
      REQUIRE(strided.buffer[i] == before[i] + 1);
      ++changed;
    }
    REQUIRE(changed == packed.size());
  }
}

TEST_CASE("ranges lie back to back in their buffer", "[tensor_table]") {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    CAPTURE(seed);
    Random random(seed);
    const Dims shape = random_shape(random);
    const Box box = random_box(random, whole(shape));
    const auto count = elements(box);
    Range range;
    range.begin = below(random, count + 1);
    range.end = range.begin + below(random, count - range.begin + 1);
    const auto all = expected(shape, box);
    std::vector<std::uint32_t> buffer(all.begin() + static_cast<std::ptrdiff_t>(range.begin),
                                      all.begin() + static_cast<std::ptrdiff_t>(range.end));
    State state;
    state.section("optimizer").add({"m", DType::u32, shape}, box, range, buffer.empty() ? nullptr : buffer.data());
    const auto table = make_tensor_table(state, nullptr);
    REQUIRE(table.has_value());
    const auto& tensor = table->sections[0].tensors[0];
    std::uint64_t held_elements = 0;
    for (const auto& local : tensor.boxes) {
      REQUIRE(gathered(tensor, local.box) == expected(shape, local.box));
      const auto target = find_target(tensor, local.box);
      REQUIRE(target.has_value());
      REQUIRE((*target)->view.data == local.view.data);
      held_elements += elements(local.box);
    }
    REQUIRE(held_elements == range.end - range.begin);
    if (held_elements == 0) continue;
    REQUIRE(tensor.boxes.size() <= (shape.empty() ? 1 : 2 * (shape.size() - 1) + 1));
  }
}

TEST_CASE("a part that several boxes of one rank hold together is gathered in its own order", "[tensor_table]") {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    CAPTURE(seed);
    Random random(seed);
    Dims shape = random_shape(random);
    if (shape.empty()) shape.push_back(5);
    // The tensor as the ranges of a random cut, and a box across them.
    const auto count = elements(whole(shape));
    std::vector<std::uint64_t> cuts{0, count};
    for (int i = 0; i < 3; ++i) cuts.push_back(below(random, count + 1));
    std::sort(cuts.begin(), cuts.end());
    const auto all = expected(shape, whole(shape));
    std::vector<std::vector<std::uint32_t>> buffers;
    State state;
    for (std::size_t i = 0; i + 1 < cuts.size(); ++i) {
      if (cuts[i] == cuts[i + 1]) continue;
      buffers.emplace_back(all.begin() + static_cast<std::ptrdiff_t>(cuts[i]),
                           all.begin() + static_cast<std::ptrdiff_t>(cuts[i + 1]));
      state.section("s").add({"w", DType::u32, shape}, whole(shape), Range{cuts[i], cuts[i + 1]},
                             buffers.back().data());
    }
    const auto table = make_tensor_table(state, nullptr);
    REQUIRE(table.has_value());
    const Box part = random_box(random, whole(shape));
    REQUIRE(gathered(table->sections[0].tensors[0], part) == expected(shape, part));
  }
}

TEST_CASE("cuts give the piece at the coordinates, and equal states share one body", "[tensor_table]") {
  std::vector<std::uint32_t> first(9);
  std::vector<std::uint32_t> second(9);
  const TensorSpec spec{"w", DType::u32, {6, 6}};
  const std::vector<Cut> cuts{{0, 2, 0}, {1, 2, 1}};
  State state;
  state.section("model").add(spec, cuts, first.data()).at({0, 1});
  State other;
  other.section("model").add(spec, cuts, second.data()).at({1, 0});
  const auto a = make_tensor_table(state, nullptr);
  const auto b = make_tensor_table(other, &*a);
  REQUIRE((a.has_value() && b.has_value()));
  CHECK(a->sections[0].tensors[0].boxes[0].box == Box{{0, 3}, {3, 3}});
  CHECK(b->sections[0].tensors[0].boxes[0].box == Box{{3, 0}, {3, 3}});
  CHECK(a->sections[0].body_digest == b->sections[0].body_digest);
  CHECK(a->sections[0].layout.body.get() == b->sections[0].layout.body.get());
}

TEST_CASE("the order of adds does not change the layout", "[tensor_table]") {
  std::uint32_t memory[4] = {};
  State one;
  one.section("m")
      .add({"b", DType::u32, {2}}, Box{{0}, {2}}, memory)
      .add({"a", DType::u32, {2}}, Box{{0}, {2}}, memory);
  State two;
  two.section("m")
      .add({"a", DType::u32, {2}}, Box{{0}, {2}}, memory)
      .add({"b", DType::u32, {2}}, Box{{0}, {2}}, memory);
  CHECK(*make_tensor_table(one, nullptr)->sections[0].layout.body ==
        *make_tensor_table(two, nullptr)->sections[0].layout.body);
}

TEST_CASE("byte boxes of slices become whole elements for every type", "[tensor_table]") {
  for (std::uint8_t number = 1; number <= dtype_count; ++number) {
    const auto dtype = *dtype_from_number(number);
    CAPTURE(to_string(dtype));
    const TensorSpec spec{"w", dtype, {4, 8}};
    const Box box{{1, 0}, {2, 8}};
    const auto units = bytes_to_units(spec, to_byte_box(spec, box));
    REQUIRE(units.has_value());
    CHECK(*units == to_units(spec, box));
    CHECK(elements(*units) * unit_bytes(dtype) == box_bytes(dtype, box));
    const TensorSpec scalar{"s", dtype, {}};
    CHECK(elements(*bytes_to_units(scalar, to_byte_box(scalar, Box{}))) * unit_bytes(dtype) == box_bytes(dtype, Box{}));
  }
  const TensorSpec wide{"w", DType::f64, {8}};
  CHECK(bytes_to_units(wide, Box{{4}, {8}}).error().code == Code::corrupt);
}

TEST_CASE("sub-byte tensors are gathered in bytes", "[tensor_table]") {
  std::vector<std::uint8_t> memory{0x10, 0x32, 0x54, 0x76, 0xFF, 0xFF, 0x98, 0xBA, 0xDC, 0xFE};
  State state;
  state.section("m").add({"w", DType::i4, {2, 8}}, Box{{0, 0}, {2, 8}}, Memory(memory.data(), {12, 1}));
  const auto table = make_tensor_table(state, nullptr);
  REQUIRE(table.has_value());
  const auto& tensor = table->sections[0].tensors[0];
  const auto copies = part_copies(tensor, to_units(tensor.spec, Box{{0, 2}, {2, 4}}));
  REQUIRE(copies.has_value());
  std::vector<std::uint8_t> packed(4);
  gather(*copies, std::as_writable_bytes(std::span(packed)));
  CHECK(packed == std::vector<std::uint8_t>{0x32, 0x54, 0xBA, 0xDC});

  // Rows that end inside a byte: only whole, as one run.
  State flat_state;
  flat_state.section("m").add({"w", DType::u4, {3, 3}}, Box{{0, 0}, {3, 3}}, Range{0, 9}, memory.data());
  const auto flat_table = make_tensor_table(flat_state, nullptr);
  REQUIRE(flat_table.has_value());
  CHECK(flat_table->sections[0].tensors[0].boxes[0].box == Box{{0}, {5}});
}

void check_refused(const State& state, const std::vector<std::string>& words) {
  const auto table = make_tensor_table(state, nullptr);
  REQUIRE_FALSE(table.has_value());
  CHECK(table.error().code == Code::invalid);
  CAPTURE(table.error().message);
  for (const auto& word : words) CHECK(table.error().message.find(word) != std::string::npos);
}

TEST_CASE("mistakes are refused by section and name", "[tensor_table]") {
  std::uint32_t memory[64] = {};
  const TensorSpec spec{"layer.w", DType::u32, {4, 4}};
  const Box all = whole(spec.shape);
  const auto with = [&](auto build) {
    State state;
    build(state.section("model"));
    return state;
  };
  check_refused(with([&](SectionState& s) {
                  s.add(spec, Box{{0, 2}, {4, 4}}, memory);
                }),
                {"model", "layer.w", "leaves"});
  check_refused(with([&](SectionState& s) { s.add(spec, all, nullptr); }), {"model", "layer.w", "no memory"});
  check_refused(with([&](SectionState& s) { s.add(spec, all, Memory(memory, {1})); }), {"layer.w", "1 strides"});
  check_refused(with([&](SectionState& s) { s.add(spec, all, Range{0, 17}, memory); }), {"layer.w", "[0, 17)"});
  check_refused(with([&](SectionState& s) {
                  s.add(spec, all, Range{0, 4}, Memory(memory, {4, 1}));
                }),
                {"layer.w", "no strides"});
  check_refused(with([&](SectionState& s) {
                  s.add(spec, std::vector<Cut>{{2, 2, 0}}, memory).at({0});
                }),
                {"layer.w", "dimension 2"});
  check_refused(with([&](SectionState& s) {
                  s.add(spec, std::vector<Cut>{{0, 2, 0}}, memory);
                }),
                {"layer.w", "slot 0"});
  check_refused(with([&](SectionState& s) { s.add(spec, all, memory).add(spec, all, memory); }),
                {"model", "layer.w", "twice"});
  check_refused(with([&](SectionState& s) {
                  s.add(spec, all, memory).add({"layer.w", DType::f32, {4, 4}}, all, memory);
                }),
                {"model", "layer.w u32", "layer.w f32"});
  check_refused(with([&](SectionState& s) { s.add({"\xFF", DType::u8, {}}, Box{}, memory); }), {"model", "not UTF-8"});
  check_refused(with([&](SectionState& s) { s.item("steps", Value{std::int64_t{3}}, Scope::splittable); }),
                {"model", "steps", "not a list"});
  check_refused(with([&](SectionState& s) {
                  s.add({"q", DType::i4, {4, 4}}, all, Memory(memory, {3, 1}));
                }),
                {"q", "stride 3"});
  check_refused(with([&](SectionState& s) {
                  s.add(spec, all, Memory(memory, {INT64_MAX, 1}));
                }),
                {"layer.w", "stride"});
  State bad_section;
  bad_section.section("no/slash");
  check_refused(bad_section, {"no/slash"});
  State empty_box;
  empty_box.section("model").add(spec, Box{{4, 0}, {0, 4}}, nullptr);
  CHECK(make_tensor_table(empty_box, nullptr).has_value());
}

TEST_CASE("what is not held is an error that names tensor and box", "[tensor_table]") {
  std::uint32_t memory[16] = {};
  State state;
  state.section("model").add({"w", DType::u32, {4, 4}}, Box{{0, 0}, {2, 4}}, memory);
  const auto table = make_tensor_table(state, nullptr);
  const auto& tensor = table->sections[0].tensors[0];
  const auto copies = part_copies(tensor, Box{{1, 1}, {2, 2}});
  REQUIRE_FALSE(copies.has_value());
  CHECK(copies.error().message.find("'w'") != std::string::npos);
  CHECK(find_target(tensor, Box{{2, 0}, {1, 4}}).error().code == Code::internal);
  CHECK(find_target(tensor, Box{{1, 0}, {1, 4}}).has_value());
}

}  // namespace
}  // namespace vckpt
