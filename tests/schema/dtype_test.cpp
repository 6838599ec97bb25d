// Element types: the table that stands on disk and on the wire, row by row.
#include "schema/dtype.h"

#include <set>
#include <string>

#include "tests/support/catch.h"

namespace vckpt {
namespace {

struct Row {
  std::uint8_t number;
  std::string_view name;
  std::uint32_t bits;
  std::string_view safetensors;
};

// A copy of what was released: a change here breaks files that exist.
constexpr Row rows[] = {
    {1, "bool", 8, "BOOL"},
    {2, "u8", 8, "U8"},
    {3, "i8", 8, "I8"},
    {4, "u16", 16, "U16"},
    {5, "i16", 16, "I16"},
    {6, "u32", 32, "U32"},
    {7, "i32", 32, "I32"},
    {8, "u64", 64, "U64"},
    {9, "i64", 64, "I64"},
    {10, "f16", 16, "F16"},
    {11, "bf16", 16, "BF16"},
    {12, "f32", 32, "F32"},
    {13, "f64", 64, "F64"},
    {14, "f8_e4m3fn", 8, "F8_E4M3"},
    {15, "f8_e5m2", 8, "F8_E5M2"},
    {16, "f8_e4m3fnuz", 8, "F8_E4M3FNUZ"},
    {17, "f8_e5m2fnuz", 8, "F8_E5M2FNUZ"},
    {18, "f8_e8m0fnu", 8, "F8_E8M0"},
    {19, "f4_e2m1fn_x2", 8, ""},
    {20, "c32", 32, ""},
    {21, "c64", 64, "C64"},
    {22, "c128", 128, ""},
    {23, "i4", 4, ""},
    {24, "u4", 4, ""},
    {25, "f6_e2m3", 6, "F6_E2M3"},
    {26, "f6_e3m2", 6, "F6_E3M2"},
    {27, "f4", 4, "F4"},
};

TEST_CASE("every element type has its number, name and size", "[dtype]") {
  CHECK(std::size(rows) == dtype_count);
  for (const auto& row : rows) {
    INFO(row.name);
    const auto dtype = dtype_from_number(row.number);
    REQUIRE(dtype.has_value());
    CHECK(to_string(*dtype) == row.name);
    CHECK(bits(*dtype) == row.bits);
    CHECK(parse_dtype(row.name) == *dtype);
    CHECK(safetensors_name(*dtype).value_or("") == row.safetensors);
    if (!row.safetensors.empty()) CHECK(dtype_from_safetensors(row.safetensors) == *dtype);
  }
}

TEST_CASE("unknown types are nothing", "[dtype]") {
  CHECK_FALSE(dtype_from_number(0).has_value());
  CHECK_FALSE(dtype_from_number(dtype_count + 1).has_value());
  CHECK_FALSE(dtype_from_number(255).has_value());
  for (const char* name : {"", "F32", "f33", "boolean", "f32 "}) CHECK_FALSE(parse_dtype(name).has_value());
  for (const char* name : {"", "f32", "F33", "C128", "I4"}) CHECK_FALSE(dtype_from_safetensors(name).has_value());
}

}  // namespace
}  // namespace vckpt
