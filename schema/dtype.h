// Element types: every one that safetensors or torch knows. Sizes are counted in bits; types below one byte pack
// little end first (element 0 in the low bits).
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace vckpt {

// The numbers stand on disk and on the wire; they are never reused.
enum class DType : std::uint8_t {
  boolean = 1,
  u8 = 2,
  i8 = 3,
  u16 = 4,
  i16 = 5,
  u32 = 6,
  i32 = 7,
  u64 = 8,
  i64 = 9,
  f16 = 10,
  bf16 = 11,
  f32 = 12,
  f64 = 13,
  f8_e4m3fn = 14,
  f8_e5m2 = 15,
  f8_e4m3fnuz = 16,
  f8_e5m2fnuz = 17,
  f8_e8m0fnu = 18,
  f4_e2m1fn_x2 = 19,  // torch's pair of two: one element is one byte
  c32 = 20,
  c64 = 21,
  c128 = 22,
  i4 = 23,
  u4 = 24,
  f6_e2m3 = 25,
  f6_e3m2 = 26,
  f4 = 27,  // one element is four bits
};

constexpr std::uint8_t dtype_count = 27;

std::uint32_t bits(DType dtype);
std::string_view to_string(DType dtype);  // the names above, `bool` for boolean

std::optional<DType> parse_dtype(std::string_view name);      // inverse of to_string
std::optional<DType> dtype_from_number(std::uint8_t number);  // nothing for unknown numbers

// The name in a safetensors header (`BF16`); nothing for types that the format does not know: those are stored as `U8`
// with the last dimension in bytes, and their true type stands in `__metadata__` and in the plan.
std::optional<std::string_view> safetensors_name(DType dtype);
std::optional<DType> dtype_from_safetensors(std::string_view name);

}  // namespace vckpt
