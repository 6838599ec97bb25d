#include "schema/dtype.h"

#include <array>

namespace vckpt {
namespace {

struct Row {
  DType dtype;
  std::uint32_t bits;
  std::string_view name;
  std::string_view safetensors;  // empty: the format has no name for it
};

constexpr std::array<Row, dtype_count> rows{{
    {DType::boolean, 8, "bool", "BOOL"},
    {DType::u8, 8, "u8", "U8"},
    {DType::i8, 8, "i8", "I8"},
    {DType::u16, 16, "u16", "U16"},
    {DType::i16, 16, "i16", "I16"},
    {DType::u32, 32, "u32", "U32"},
    {DType::i32, 32, "i32", "I32"},
    {DType::u64, 64, "u64", "U64"},
    {DType::i64, 64, "i64", "I64"},
    {DType::f16, 16, "f16", "F16"},
    {DType::bf16, 16, "bf16", "BF16"},
    {DType::f32, 32, "f32", "F32"},
    {DType::f64, 64, "f64", "F64"},
    {DType::f8_e4m3fn, 8, "f8_e4m3fn", "F8_E4M3"},
    {DType::f8_e5m2, 8, "f8_e5m2", "F8_E5M2"},
    {DType::f8_e4m3fnuz, 8, "f8_e4m3fnuz", "F8_E4M3FNUZ"},
    {DType::f8_e5m2fnuz, 8, "f8_e5m2fnuz", "F8_E5M2FNUZ"},
    {DType::f8_e8m0fnu, 8, "f8_e8m0fnu", "F8_E8M0"},
    {DType::f4_e2m1fn_x2, 8, "f4_e2m1fn_x2", ""},
    {DType::c32, 32, "c32", ""},
    {DType::c64, 64, "c64", "C64"},
    {DType::c128, 128, "c128", ""},
    {DType::i4, 4, "i4", ""},
    {DType::u4, 4, "u4", ""},
    {DType::f6_e2m3, 6, "f6_e2m3", "F6_E2M3"},
    {DType::f6_e3m2, 6, "f6_e3m2", "F6_E3M2"},
    {DType::f4, 4, "f4", "F4"},
}};

constexpr bool rows_in_order() {
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (static_cast<std::size_t>(rows[i].dtype) != i + 1) return false;
  }
  return true;
}
static_assert(rows_in_order());

constexpr const Row& row(DType dtype) { return rows[static_cast<std::size_t>(dtype) - 1]; }

}  // namespace

std::uint32_t bits(DType dtype) { return row(dtype).bits; }
std::string_view to_string(DType dtype) { return row(dtype).name; }

std::optional<DType> parse_dtype(std::string_view name) {
  for (const auto& candidate : rows) {
    if (candidate.name == name) return candidate.dtype;
  }
  return std::nullopt;
}

std::optional<DType> dtype_from_number(std::uint8_t number) {
  if (number == 0 || number > dtype_count) return std::nullopt;
  return static_cast<DType>(number);
}

std::optional<std::string_view> safetensors_name(DType dtype) {
  const auto name = row(dtype).safetensors;
  if (name.empty()) return std::nullopt;
  return name;
}

std::optional<DType> dtype_from_safetensors(std::string_view name) {
  for (const auto& candidate : rows) {
    if (!candidate.safetensors.empty() && candidate.safetensors == name) return candidate.dtype;
  }
  return std::nullopt;
}

}  // namespace vckpt
