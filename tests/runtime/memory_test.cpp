#include "runtime/memory.h"

#include <algorithm>
#include <cstring>
#include <random>

#include "schema/result.h"
#include "tests/support/catch.h"

using namespace vckpt;

namespace {

// Bytes of `part` in packed order, element by element: what every faster way must agree with.
std::vector<std::byte> oracle(const View& view, const Box& box, const Box& part, std::uint64_t element_bytes) {
  std::vector<std::byte> packed;
  Dims position = part.offsets;
  for (std::uint64_t i = 0; i < elements(part); ++i) {
    const std::byte* element = view.data;
    for (std::size_t d = 0; d < position.size(); ++d) {
      element += static_cast<std::int64_t>(position[d] - box.offsets[d]) * view.strides_bytes[d];
    }
    packed.insert(packed.end(), element, element + element_bytes);
    for (std::size_t d = position.size(); d-- > 0;) {
      if (++position[d] < part.offsets[d] + part.sizes[d]) break;
      position[d] = part.offsets[d];
    }
  }
  return packed;
}

// A random box in memory of its own: dense, with padding between rows, with dimensions in another order, or reversed.
struct Case {
  Box box;
  Box part;
  std::uint64_t element_bytes = 1;
  std::vector<std::byte> memory;
  View view;
};

Case random_case(std::mt19937_64& random) {
  Case c;
  const auto below = [&random](std::uint64_t bound) { return random() % bound; };
  const std::size_t dims = below(5);
  c.element_bytes = std::uint64_t{1} << below(5);
  if (below(6) == 0) c.element_bytes = 3;
  for (std::size_t d = 0; d < dims; ++d) {
    c.box.offsets.push_back(below(100));
    c.box.sizes.push_back(1 + below(6));
    const std::uint64_t begin = below(c.box.sizes[d]);
    c.part.offsets.push_back(c.box.offsets[d] + begin);
    c.part.sizes.push_back(below(20) == 0 ? 0 : 1 + below(c.box.sizes[d] - begin));
  }
  std::vector<std::size_t> order(dims);
  for (std::size_t d = 0; d < dims; ++d) order[d] = dims - 1 - d;
  if (below(2) == 0) std::shuffle(order.begin(), order.end(), random);
  c.view.strides_bytes.resize(dims);
  std::uint64_t extent = c.element_bytes;
  std::uint64_t start = 0;
  for (const auto d : order) {
    if (below(4) == 0) extent += c.element_bytes * (1 + below(3));
    const auto stride = static_cast<std::int64_t>(extent);
    const bool reversed = below(8) == 0;
    c.view.strides_bytes[d] = reversed ? -stride : stride;
    if (reversed) start += extent * (c.box.sizes[d] - 1);
    extent *= c.box.sizes[d];
  }
  c.memory.resize(extent);
  for (auto& byte : c.memory) byte = static_cast<std::byte>(random());
  c.view.data = c.memory.data() + start;
  return c;
}

}  // namespace

TEST_CASE("dense strides are row major") {
  CHECK(dense_strides({2, 3, 4}, 8) == std::vector<std::int64_t>{96, 32, 8});
  CHECK(dense_strides({}, 8).empty());
}

TEST_CASE("a contiguous part is one run, whatever its dimensions") {
  std::vector<std::byte> memory(2 * 3 * 4);
  const Box box{{5, 0, 0}, {2, 3, 4}};
  const View view{memory.data(), dense_strides(box.sizes, 1)};
  for (const Box& part : {box, Box{{6, 0, 0}, {1, 3, 4}}, Box{{6, 1, 0}, {1, 2, 4}}, Box{{5, 2, 1}, {1, 1, 3}}}) {
    const auto list = copies(view, box, part);
    REQUIRE(list.size() == 1);
    CHECK(list[0].rows == 1);
    CHECK(list[0].run_bytes == elements(part));
  }
}

TEST_CASE("a column block of a matrix is one copy of many rows") {
  std::vector<std::byte> memory(8 * 16);
  const Box box{{0, 0}, {8, 16}};
  const auto list = copies(View{memory.data(), {16, 1}}, box, Box{{2, 4}, {5, 8}});
  REQUIRE(list.size() == 1);
  CHECK(list[0].data == memory.data() + 2 * 16 + 4);
  CHECK(list[0].run_bytes == 8);
  CHECK(list[0].rows == 5);
  CHECK(list[0].stride_bytes == 16);
}

TEST_CASE("a scalar is one run of its element, and an empty part is none") {
  std::vector<std::byte> memory(8);
  CHECK(packed_bytes(element_copies(View{memory.data(), {}}, Box{}, Box{}, 8)) == 8);
  CHECK(element_copies(View{nullptr, {4}}, Box{{0}, {0}}, Box{{0}, {0}}, 4).empty());
}

TEST_CASE("copies of random strided views gather and scatter what an element by element walk does") {
  const auto seed = std::random_device()();
  INFO("seed " << seed);
  std::mt19937_64 random(seed);
  for (int i = 0; i < 1500; ++i) {
    Case c = random_case(random);
    const auto list = element_copies(c.view, c.box, c.part, c.element_bytes);
    const auto expected = oracle(c.view, c.box, c.part, c.element_bytes);
    REQUIRE(packed_bytes(list) == expected.size());
    std::vector<std::byte> packed(expected.size());
    gather(list, packed);
    REQUIRE(packed == expected);

    // Any cut of packed order gathers the same bytes.
    std::vector<std::byte> pieces(expected.size());
    for (std::uint64_t begin = 0; begin < pieces.size();) {
      const std::uint64_t length = 1 + random() % (pieces.size() - begin);
      gather_range(list, begin, std::span(pieces).subspan(begin, length));
      begin += length;
    }
    REQUIRE(pieces == expected);

    // Scattering writes the part and nothing beside it: other bytes in, the old ones back, all memory as before.
    const auto before = c.memory;
    std::vector<std::byte> other(expected.size());
    for (std::size_t b = 0; b < other.size(); ++b) other[b] = ~expected[b];
    scatter(other, list);
    REQUIRE(oracle(c.view, c.box, c.part, c.element_bytes) == other);
    for (std::uint64_t begin = 0; begin < expected.size();) {
      const std::uint64_t length = 1 + random() % (expected.size() - begin);
      scatter_range(std::span(expected).subspan(begin, length), begin, list);
      begin += length;
    }
    REQUIRE(c.memory == before);
  }
}
