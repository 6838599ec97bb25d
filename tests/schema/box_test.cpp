// Boxes and ranges against element-by-element oracles, and size arithmetic at its limits.
#include "schema/box.h"

#include <limits>
#include <numeric>
#include <random>
#include <set>

#include "schema/checked.h"
#include "tests/support/catch.h"

namespace vckpt {
namespace {

constexpr std::uint64_t most = std::numeric_limits<std::uint64_t>::max();

// Every element of a box in row-major order, as coordinates.
std::vector<Dims> elements_of(const Box& box) {
  std::vector<Dims> out;
  Dims at = box.offsets;
  for (std::uint64_t n = elements(box); n > 0; --n) {
    out.push_back(at);
    for (std::size_t d = at.size(); d-- > 0;) {
      if (++at[d] < box.offsets[d] + box.sizes[d]) break;
      at[d] = box.offsets[d];
    }
  }
  return out;
}

struct Random {
  std::uint32_t seed = std::random_device{}();
  std::mt19937_64 engine{seed};
  std::uint64_t below(std::uint64_t end) { return engine() % end; }
  Dims shape(std::size_t dims, std::uint64_t size_max) {
    Dims out(dims);
    for (auto& size : out) size = below(size_max + 1);
    return out;
  }
  Box box_in(const Dims& shape) {
    Box box = whole(shape);
    for (std::size_t d = 0; d < shape.size(); ++d) {
      box.offsets[d] = below(shape[d] + 1);
      box.sizes[d] = below(shape[d] - box.offsets[d] + 1);
    }
    return box;
  }
};

TEST_CASE("a range becomes at most 2(k-1)+1 boxes that hold its elements in order", "[box]") {
  Random random;
  INFO("seed " << random.seed);
  for (int round = 0; round < 400; ++round) {
    const std::size_t dims = random.below(5);
    const Box box = random.box_in(random.shape(dims, 6));
    const auto all = elements_of(box);
    const std::uint64_t begin = random.below(all.size() + 1);
    const Range range{begin, begin + random.below(all.size() - begin + 1)};
    INFO("box " << to_string(box) << " range " << to_string(range));
    const auto boxes = to_boxes(box, range);
    REQUIRE(boxes.size() <= (dims == 0 ? 1 : 2 * (dims - 1) + 1));
    std::vector<Dims> covered;
    for (const auto& part : boxes) {
      REQUIRE_FALSE(empty(part));
      for (auto& element : elements_of(part)) covered.push_back(std::move(element));
    }
    REQUIRE(covered == std::vector<Dims>(all.begin() + static_cast<std::ptrdiff_t>(range.begin),
                                         all.begin() + static_cast<std::ptrdiff_t>(range.end)));
  }
}

TEST_CASE("every range of a small box is cut right", "[box]") {
  const Box box{{2, 0, 5}, {3, 2, 4}};
  const auto all = elements_of(box);
  for (std::uint64_t begin = 0; begin <= all.size(); ++begin) {
    for (std::uint64_t end = begin; end <= all.size(); ++end) {
      std::vector<Dims> covered;
      const auto boxes = to_boxes(box, {begin, end});
      for (const auto& part : boxes) {
        for (auto& element : elements_of(part)) covered.push_back(std::move(element));
      }
      const bool right = boxes.size() <= 5 && covered.size() == end - begin &&
                         std::equal(covered.begin(), covered.end(), all.begin() + static_cast<std::ptrdiff_t>(begin));
      if (!right) FAIL("range " << to_string(Range{begin, end}));
    }
  }
  CHECK(all.size() == 24);
}

TEST_CASE("a range of an absurdly large box is cut without enumerating it", "[box]") {
  const std::uint64_t row = std::uint64_t{1} << 40;
  const Box box = whole({std::uint64_t{1} << 20, row});
  const auto boxes = to_boxes(box, {row - 1, 3 * row + 1});
  CHECK(boxes == std::vector<Box>{{{0, row - 1}, {1, 1}}, {{1, 0}, {2, row}}, {{3, 0}, {1, 1}}});
}

TEST_CASE("intersect and contains agree with sets of elements", "[box]") {
  Random random;
  INFO("seed " << random.seed);
  int common_boxes = 0;
  for (int round = 0; round < 1000; ++round) {
    const Dims shape = random.shape(random.below(4), 4);
    const Box a = random.box_in(shape);
    const Box b = random.box_in(shape);
    INFO(to_string(a) << " and " << to_string(b));
    const auto of_a = elements_of(a);
    const auto of_b = elements_of(b);
    std::vector<Dims> expected;
    std::set_intersection(of_a.begin(), of_a.end(), of_b.begin(), of_b.end(), std::back_inserter(expected));
    const auto common = intersect(a, b);
    REQUIRE(common.has_value() == !expected.empty());
    if (common) REQUIRE(elements_of(*common) == expected);
    common_boxes += common ? 1 : 0;
    if (!of_b.empty()) REQUIRE(contains(a, b) == (expected.size() == of_b.size()));
  }
  CHECK(common_boxes > 0);
}

TEST_CASE("cuts are ceil-sized chunks that follow one another", "[box]") {
  const auto sizes = [](std::uint64_t size, std::uint64_t parts) {
    Dims out;
    for (std::uint64_t index = 0; index < parts; ++index) out.push_back(cut(whole({size}), 0, parts, index).sizes[0]);
    return out;
  };
  CHECK(sizes(10, 4) == Dims{3, 3, 3, 1});
  CHECK(sizes(5, 4) == Dims{2, 2, 1, 0});
  CHECK(sizes(2, 5) == Dims{1, 1, 0, 0, 0});
  CHECK(sizes(0, 2) == Dims{0, 0});
  CHECK(cut(whole({3, 2}), 0, 4, 3) == Box{{3, 0}, {0, 2}});
  CHECK(cut(Box{{10, 7}, {5, 4}}, 1, 3, 1) == Box{{10, 9}, {5, 2}});

  Random random;
  INFO("seed " << random.seed);
  for (int round = 0; round < 300; ++round) {
    const Box box = random.box_in(random.shape(1 + random.below(3), 9));
    const auto dim = static_cast<std::uint32_t>(random.below(box.sizes.size()));
    const std::uint64_t parts = 1 + random.below(7);
    std::uint64_t next = box.offsets[dim];
    for (std::uint64_t index = 0; index < parts; ++index) {
      const Box part = cut(box, dim, parts, index);
      REQUIRE(contains(box, part));
      REQUIRE(part.offsets[dim] == next);
      next += part.sizes[dim];
    }
    REQUIRE(next == box.offsets[dim] + box.sizes[dim]);
  }
}

TEST_CASE("a cut of the largest dimension does not wrap", "[box]") {
  const std::uint64_t size = most / 2;
  const Box last = cut(whole({size}), 0, 0xFFFFFFFF, 0xFFFFFFFE);
  CHECK(last.offsets[0] + last.sizes[0] == size);
  CHECK(cut(whole({5}), 0, most, most - 1) == Box{{5}, {0}});
}

TEST_CASE("shapes and boxes are refused at one past their limits", "[box]") {
  CHECK(check_shape(Dims(dims_max, 1)).has_value());
  CHECK_FALSE(check_shape(Dims(dims_max + 1, 1)).has_value());
  CHECK(check_shape({most / 2}).has_value());
  CHECK_FALSE(check_shape({most / 2 + 1}).has_value());
  CHECK(check_shape({std::uint64_t{1} << 31, std::uint64_t{1} << 31}).has_value());
  CHECK_FALSE(check_shape({std::uint64_t{1} << 32, std::uint64_t{1} << 32}).has_value());
  CHECK_FALSE(check_shape({0, std::uint64_t{1} << 32, std::uint64_t{1} << 32}).has_value());
  CHECK(check_shape({}).has_value());

  CHECK(check_box({{1, 0}, {2, 4}}, {3, 4}).has_value());
  CHECK(check_box({{3, 4}, {0, 0}}, {3, 4}).has_value());
  CHECK_FALSE(check_box({{1, 0}, {3, 4}}, {3, 4}).has_value());
  CHECK_FALSE(check_box({{4, 0}, {0, 4}}, {3, 4}).has_value());
  CHECK_FALSE(check_box({{most, 0}, {2, 4}}, {3, 4}).has_value());
  CHECK_FALSE(check_box({{0}, {3}}, {3, 4}).has_value());
  CHECK_FALSE(check_box({{0, 0}, {3}}, {3, 4}).has_value());
  CHECK(check_box({}, {}).has_value());
  CHECK(check_box({{2}, {2}}, {3}).error().message == "box [2]+[2] leaves shape [3] in dimension 0");
}

TEST_CASE("a scalar is one element", "[box]") {
  CHECK(elements(Box{}) == 1);
  CHECK(whole({}) == Box{});
  CHECK(intersect(Box{}, Box{}) == Box{});
  CHECK(contains(Box{}, Box{}));
  CHECK(to_boxes(Box{}, {0, 1}) == std::vector<Box>{Box{}});
  CHECK(to_boxes(Box{}, {0, 0}).empty());
}

TEST_CASE("boxes read like intervals", "[box]") {
  CHECK(to_string(Dims{4, 6}) == "[4, 6]");
  CHECK(to_string(Dims{}) == "[]");
  CHECK(to_string(Box{{0, 2}, {3, 2}}) == "[0, 3)x[2, 4)");
  CHECK(to_string(Box{}) == "scalar");
  CHECK(to_string(Range{3, 9}) == "[3, 9)");
}

TEST_CASE("checked arithmetic fits up to its last number and not one further", "[checked]") {
  CHECK(checked_add(most, 0) == most);
  CHECK_FALSE(checked_add(most, 1).has_value());
  CHECK(checked_add(most / 2, most / 2 + 1) == most);
  CHECK(checked_multiply(most, 1) == most);
  CHECK(checked_multiply(most, 0) == 0);
  CHECK_FALSE(checked_multiply(most / 2 + 1, 2).has_value());
  CHECK(checked_multiply(0xFFFFFFFF, 0x100000001) == most);
  const auto product = [](const Dims& factors) { return checked_product(factors); };
  CHECK(product({}) == 1);
  CHECK(product({3, 5, 7}) == 105);
  CHECK(product({0, most}) == 0);
  CHECK_FALSE(product({most, 0, 2}).has_value());
  CHECK_FALSE(product({0, most, 2}).has_value());
  CHECK(divide_up(0, 3) == 0);
  CHECK(divide_up(7, 3) == 3);
  CHECK(divide_up(most, 1) == most);
  CHECK(divide_up(most, 2) == most / 2 + 1);
  CHECK(round_up(4096, 4096) == 4096);
  CHECK(round_up(4097, 4096) == 8192);
}

}  // namespace
}  // namespace vckpt
