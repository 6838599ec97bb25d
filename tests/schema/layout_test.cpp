// Layouts: what an entry holds at coordinates, sizes of types below one byte, and what is refused by which words.
#include "schema/layout.h"

#include <limits>
#include <string>

#include "tests/support/catch.h"

namespace vckpt {
namespace {

constexpr std::uint64_t most = std::numeric_limits<std::uint64_t>::max();

Layout layout(std::vector<TensorSpec> tensors, std::vector<Entry> entries, Coordinates coordinates = {}) {
  return {std::make_shared<const LayoutBody>(LayoutBody{std::move(tensors), std::move(entries)}),
          std::move(coordinates)};
}

void check_refused(const Layout& bad, const std::string& words) {
  const auto checked = check_layout(bad);
  INFO("expected: " << words);
  REQUIRE_FALSE(checked.has_value());
  CHECK(checked.error().code == Code::invalid);
  CHECK(checked.error().message == words);
}

TEST_CASE("cuts apply from left to right, also twice along one dimension", "[layout]") {
  const LayoutBody body{{{"w", DType::f32, {10, 4}}}, {Entry{0, {}, {{0, 3, 0}, {0, 2, 1}, {1, 2, 2}}, Range{1, 3}}}};
  CHECK(cut_box(body, body.entries[0], {1, 1, 0}) == Box{{6, 0}, {2, 2}});
  CHECK(cut_box(body, body.entries[0], {2, 1, 1}) == Box{{9, 2}, {1, 2}});
  CHECK(held(body, body.entries[0], {0, 0, 0}) == Held{0, {{0, 0}, {2, 2}}, Range{1, 3}});
}

TEST_CASE("a box of an entry is where its cuts start", "[layout]") {
  const LayoutBody body{{{"w", DType::f32, {10}}}, {Entry{0, Box{{4}, {5}}, {{0, 2, 0}}, {}}}};
  CHECK(cut_box(body, body.entries[0], {0}) == Box{{4}, {3}});
  CHECK(cut_box(body, body.entries[0], {1}) == Box{{7}, {2}});
}

TEST_CASE("good layouts are taken", "[layout]") {
  CHECK(check_layout(layout({}, {})).has_value());
  CHECK(check_layout(
            layout({{"s", DType::f32, {}}, {"z", DType::f32, {0, 7}}}, {Entry{0, {}, {}, {}}, Entry{1, {}, {}, {}}}))
            .has_value());
  CHECK(check_layout(layout({{"w", DType::f32, {4}}}, {Entry{0, {}, {{0, 3, 0}}, Range{0, 0}}}, {2})).has_value());
  CHECK(check_layout(layout({{"w", DType::f32, {4}}}, {Entry{0, Box{{4}, {0}}, {}, {}}})).has_value());
}

TEST_CASE("bad layouts are refused by name", "[layout]") {
  const TensorSpec w{"w", DType::f32, {4, 6}};
  check_refused(layout({w, w}, {}), "tensor 'w' is listed twice");
  check_refused(layout({w}, {Entry{1, {}, {}, {}}}), "a layout entry names tensor number 1 of 1");
  check_refused(layout({{"w", DType::f32, Dims(33, 1)}}, {}), "tensor 'w': shape has 33 dimensions; at most 32");
  check_refused(layout({{"w", DType::f64, {most / 8}}}, {}),
                "tensor 'w': shape [2305843009213693951] has too many bytes");
  check_refused(layout({w}, {Entry{0, Box{{0, 0}, {5, 6}}, {}, {}}}),
                "tensor 'w': box [0, 0]+[5, 6] leaves shape [4, 6] in dimension 0");
  check_refused(layout({w}, {Entry{0, {}, {{2, 1, 0}}, {}}}, {0}), "tensor 'w': cut along dimension 2 of shape [4, 6]");
  check_refused(layout({w}, {Entry{0, {}, {{0, 0, 0}}, {}}}, {0}), "tensor 'w': cut along dimension 0 into 0 parts");
  check_refused(layout({w}, {Entry{0, {}, {{0, 2, 1}}, {}}}, {0}),
                "tensor 'w': cut along dimension 0 by slot 1, but there are 1 coordinates");
  check_refused(layout({w}, {Entry{0, {}, {{0, 2, 0}}, {}}}, {2}),
                "tensor 'w': cut along dimension 0: coordinate 2 of 2 parts");
  check_refused(layout({w}, {Entry{0, {}, {}, Range{3, 25}}}),
                "tensor 'w': range [3, 25) leaves box [0, 4)x[0, 6) of 24 elements");
  check_refused(layout({w}, {Entry{0, {}, {}, Range{5, 4}}}),
                "tensor 'w': range [5, 4) leaves box [0, 4)x[0, 6) of 24 elements");
}

TEST_CASE("types below one byte are cut at bytes or held whole", "[layout]") {
  const TensorSpec even{"e", DType::i4, {3, 4}};
  const TensorSpec odd{"o", DType::i4, {3, 3}};
  CHECK(check_layout(layout({even}, {Entry{0, Box{{0, 2}, {3, 2}}, {}, {}}})).has_value());
  CHECK(check_layout(layout({even}, {Entry{0, {}, {}, Range{2, 6}}})).has_value());
  CHECK(check_layout(layout({odd}, {Entry{0, {}, {}, {}}})).has_value());
  CHECK(check_layout(layout({odd}, {Entry{0, {}, {}, Range{0, 9}}})).has_value());
  CHECK(check_layout(layout({odd}, {Entry{0, Box{{3, 0}, {0, 3}}, {}, {}}})).has_value());
  check_refused(layout({even}, {Entry{0, Box{{0, 1}, {3, 2}}, {}, {}}}),
                "tensor 'e': box [0, 3)x[1, 3) of i4 elements begins or ends inside a byte");
  check_refused(layout({even}, {Entry{0, {}, {}, Range{1, 4}}}),
                "tensor 'e': box [0, 3)x[0, 4) of i4 elements begins or ends inside a byte");
  check_refused(layout({odd}, {Entry{0, Box{{0, 0}, {2, 3}}, {}, {}}}),
                "tensor 'o': box [0, 2)x[0, 3) of i4 elements begins or ends inside a byte");
}

TEST_CASE("bytes of a box are its bits rounded up once", "[layout]") {
  for (std::uint8_t number = 1; number <= dtype_count; ++number) {
    const DType dtype = *dtype_from_number(number);
    INFO(to_string(dtype));
    CHECK(box_bytes(dtype, Box{}) == (bits(dtype) + 7) / 8);
    for (std::uint64_t count = 0; count <= 40; ++count) {
      REQUIRE(box_bytes(dtype, whole({count})) == (count * bits(dtype) + 7) / 8);
      REQUIRE(box_bytes(dtype, whole({2, count})) == (2 * count * bits(dtype) + 7) / 8);
      REQUIRE(shape_bytes(dtype, {count, 3}) == (3 * count * bits(dtype) + 7) / 8);
    }
  }
}

TEST_CASE("bytes of a shape fit in 63 bits or are nothing", "[layout]") {
  CHECK(shape_bytes(DType::u8, {most / 2 - 7}) == most / 2 - 7);
  CHECK(shape_bytes(DType::u8, {most / 2 + 1}) == std::nullopt);
  CHECK(shape_bytes(DType::f32, {std::uint64_t{1} << 60}) == std::uint64_t{1} << 62);
  CHECK(shape_bytes(DType::f32, {std::uint64_t{1} << 61}) == std::nullopt);
  CHECK(shape_bytes(DType::i4, {std::uint64_t{1} << 63}) == std::uint64_t{1} << 62);
  CHECK(shape_bytes(DType::u8, {most, most}) == std::nullopt);
  CHECK(shape_bytes(DType::u8, {0, most, most}) == std::nullopt);
  CHECK(shape_bytes(DType::c128, {}) == 16);
}

TEST_CASE("byte boxes count the last dimension in bytes", "[layout]") {
  const TensorSpec f32{"f", DType::f32, {4, 6}};
  CHECK(to_byte_box(f32, {{1, 2}, {2, 3}}) == Box{{1, 8}, {2, 12}});
  CHECK(to_byte_shape(f32) == Dims{4, 24});
  const TensorSpec scalar{"s", DType::bf16, {}};
  CHECK(to_byte_box(scalar, {}) == Box{{0}, {2}});
  const TensorSpec even{"e", DType::u4, {3, 4}};
  CHECK(to_byte_box(even, {{1, 2}, {2, 2}}) == Box{{1, 1}, {2, 1}});
  CHECK(byte_aligned(even, {{1, 2}, {2, 2}}));
  CHECK_FALSE(byte_aligned(even, {{1, 1}, {2, 2}}));
  const TensorSpec odd{"o", DType::u4, {3, 3}};
  CHECK(to_byte_box(odd, whole({3, 3})) == Box{{0}, {5}});
  CHECK(to_byte_shape(odd) == Dims{5});
  CHECK_FALSE(byte_aligned(odd, whole({3, 3})));
  const TensorSpec sixes{"x", DType::f6_e2m3, {2, 8}};
  CHECK(to_byte_box(sixes, {{0, 4}, {2, 4}}) == Box{{0, 3}, {2, 3}});
}

TEST_CASE("section names are 1 to 64 plain characters", "[layout]") {
  CHECK(check_section_name("model").has_value());
  CHECK(check_section_name("A-z_09").has_value());
  CHECK(check_section_name(std::string(64, 'm')).has_value());
  for (const std::string& name : {std::string(), std::string(65, 'm'), std::string("a/b"), std::string(".."),
                                  std::string("a b"), std::string("\xC3\xA9"), std::string("a\0b", 3)}) {
    INFO(name);
    CHECK_FALSE(check_section_name(name).has_value());
  }
}

TEST_CASE("names are 1 to 4096 bytes of UTF-8", "[layout]") {
  for (const char* good : {"", "w", "layers.0.wq", "a/b\n", "\xC3\xA9", "\xE2\x82\xAC", "\xF0\x9F\xA7\xAA",
                           "\xED\x9F\xBF", "\xEE\x80\x80", "\xF4\x8F\xBF\xBF"}) {
    INFO(good);
    CHECK(check_fqn(good).has_value());
  }
  CHECK(check_fqn(std::string(fqn_bytes_max, 'n')).has_value());
  CHECK_FALSE(check_fqn(std::string(fqn_bytes_max + 1, 'n')).has_value());
  // A lone continuation, cut off, overlong, surrogate, beyond Unicode, never a lead.
  for (const char* bad : {"\x80", "\xC3", "a\xE2\x82", "\xC0\xAF", "\xE0\x80\xAF", "\xF0\x80\x80\xAF", "\xED\xA0\x80",
                          "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xFF", "\xE2\x28\xA1"}) {
    INFO(bad);
    CHECK_FALSE(check_fqn(bad).has_value());
  }
  CHECK(check_fqn("a\xFF").error().message == "tensor name 'a\\xff' is not UTF-8");
}

}  // namespace
}  // namespace vckpt
