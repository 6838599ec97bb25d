#include "worker/cast.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "tests/support/catch.h"

namespace vckpt {
namespace {

template <typename To, typename From>
To cast_one(DType from, From value, DType to) {
  To result{};
  cast_elements(from, reinterpret_cast<const std::byte*>(&value), to, reinterpret_cast<std::byte*>(&result), 1);
  return result;
}

// All finite values of a 16-bit float in ascending order, by definition of the format.
struct Representable {
  std::vector<double> values;
  std::vector<std::uint16_t> encodings;
};

Representable positive_values(int exponent_bits, int mantissa_bits) {
  Representable all;
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const int steps = 1 << mantissa_bits;
  for (int exponent = 0; exponent < (1 << exponent_bits) - 1; ++exponent) {
    for (int fraction = 0; fraction < steps; ++fraction) {
      const double value = exponent == 0 ? std::ldexp(fraction, 1 - bias - mantissa_bits)
                                         : std::ldexp(steps + fraction, exponent - bias - mantissa_bits);
      all.values.push_back(value);
      all.encodings.push_back(static_cast<std::uint16_t>(exponent << mantissa_bits | fraction));
    }
  }
  return all;
}

// Nearest, ties to even, by search: the oracle knows nothing of bit tricks.
std::uint16_t nearest(const Representable& all, double value, std::uint16_t infinity) {
  const double magnitude = std::fabs(value);
  const std::uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  const auto above = std::lower_bound(all.values.begin(), all.values.end(), magnitude);
  if (above == all.values.end()) {
    const double last = all.values.back();
    const double step = last - all.values[all.values.size() - 2];
    return sign | (magnitude >= last + step / 2 ? infinity : all.encodings.back());
  }
  const auto index = static_cast<std::size_t>(above - all.values.begin());
  if (*above == magnitude || index == 0) return sign | all.encodings[index];
  const double down = magnitude - all.values[index - 1];
  const double up = all.values[index] - magnitude;
  const bool take_upper = up < down || (up == down && all.encodings[index] % 2 == 0);
  return sign | all.encodings[take_upper ? index : index - 1];
}

void check_narrowing(DType to, const Representable& all, std::uint16_t infinity, double value) {
  CAPTURE(value, to_string(to));
  CHECK(cast_one<std::uint16_t>(DType::f64, value, to) == nearest(all, value, infinity));
  const auto single = static_cast<float>(value);
  CHECK(cast_one<std::uint16_t>(DType::f32, single, to) == nearest(all, single, infinity));
}

TEST_CASE("narrowing rounds to nearest with ties to even, also among subnormals", "[cast]") {
  const std::uint32_t seed = 20240611;
  std::mt19937_64 random(seed);
  CAPTURE(seed);
  for (const auto& [to, exponent_bits, mantissa_bits] :
       {std::tuple{DType::f16, 5, 10}, std::tuple{DType::bf16, 8, 7}}) {
    const auto all = positive_values(exponent_bits, mantissa_bits);
    const auto infinity = static_cast<std::uint16_t>(all.encodings.back() + 1);
    for (int i = 0; i < 3000; ++i) {
      const auto at = random() % (all.values.size() - 1);
      const double middle = all.values[at] + (all.values[at + 1] - all.values[at]) / 2;  // an exact tie
      check_narrowing(to, all, infinity, middle);
      check_narrowing(to, all, infinity, -std::nextafter(middle, 1e300));
      check_narrowing(to, all, infinity, std::nextafter(middle, 0.0));
    }
    for (const double value : {0.0, -0.0, 1e300, -1e300, 65504.0, 65519.9, 65520.0, 5e-324, 1e-45}) {
      check_narrowing(to, all, infinity, value);
    }
  }
}

TEST_CASE("f64 to f16 rounds once, not through f32", "[cast]") {
  // Just above the tie between 1 and 1 + 2^-10: rounding to f32 first would make it the tie and give 1.
  const double value = 1.0 + std::ldexp(1.0, -11) + std::ldexp(1.0, -40);
  CHECK(cast_one<std::uint16_t>(DType::f64, value, DType::f16) == 0x3C01);
  CHECK(cast_one<std::uint16_t>(DType::f32, static_cast<float>(value), DType::f16) == 0x3C00);
}

TEST_CASE("every 16-bit float survives widening and narrowing again", "[cast]") {
  for (const auto type : {DType::f16, DType::bf16}) {
    for (std::uint32_t encoding = 0; encoding < 0x10000; ++encoding) {
      const auto value = static_cast<std::uint16_t>(encoding);
      for (const auto wide : {DType::f32, DType::f64}) {
        std::byte bytes[8] = {};
        cast_elements(type, reinterpret_cast<const std::byte*>(&value), wide, bytes, 1);
        const double widened =
            wide == DType::f32 ? *reinterpret_cast<const float*>(bytes) : *reinterpret_cast<const double*>(bytes);
        std::uint16_t back = 0;
        cast_elements(wide, bytes, type, reinterpret_cast<std::byte*>(&back), 1);
        const std::uint32_t infinity = type == DType::f16 ? 0x7C00 : 0x7F80;
        if ((encoding & 0x7FFF) > infinity) {
          if (!std::isnan(widened) || (back & 0x7FFF) <= infinity) FAIL("NaN " << encoding << " became " << back);
        } else if (back != value) {
          FAIL(to_string(type) << " " << encoding << " became " << back);
        }
      }
    }
  }
}

TEST_CASE("integers widen only where every value is kept", "[cast]") {
  CHECK(cast_one<std::int64_t>(DType::i8, std::int8_t{-128}, DType::i64) == -128);
  CHECK(cast_one<std::uint64_t>(DType::u32, std::uint32_t{0xFFFFFFFF}, DType::u64) == 0xFFFFFFFF);
  CHECK(cast_one<float>(DType::i16, std::int16_t{-32768}, DType::f32) == -32768.0F);
  CHECK(cast_one<double>(DType::boolean, std::uint8_t{1}, DType::f64) == 1.0);
  CHECK(cast_one<std::uint16_t>(DType::u8, std::uint8_t{255}, DType::bf16) == 0x437F);
  CHECK(can_cast(DType::u8, DType::i16));
  CHECK_FALSE(can_cast(DType::u8, DType::i8));
  CHECK_FALSE(can_cast(DType::i8, DType::u64));
  CHECK_FALSE(can_cast(DType::u16, DType::f16));
  CHECK_FALSE(can_cast(DType::i64, DType::f64));
  CHECK_FALSE(can_cast(DType::f32, DType::i32));
  CHECK_FALSE(can_cast(DType::i32, DType::boolean));
  CHECK_FALSE(can_cast(DType::f8_e5m2, DType::f16));
  CHECK(can_cast(DType::f8_e5m2, DType::f8_e5m2));
}

TEST_CASE("elements move between differently strided lists and are cast on the way", "[cast]") {
  std::vector<float> source(12);
  for (std::size_t i = 0; i < source.size(); ++i) source[i] = static_cast<float>(i) + 0.5F;
  std::vector<double> target(24, -1);
  auto* from = reinterpret_cast<std::byte*>(source.data());
  auto* to = reinterpret_cast<std::byte*>(target.data());
  // 3 rows of 2 elements, every fourth; empty runs in between count for nothing.
  const std::vector<Copy> reads{{from, 8, 3, 16}, {from, 0, 5, 8}};
  const std::vector<Copy> writes{{to, 0, 1, 0}, {to, 8, 4, 16}, {to + 80, 16, 1, 0}};
  move_elements(DType::f32, reads, DType::f64, writes);
  const std::vector<double> values{target[0], target[2], target[4], target[6], target[10], target[11]};
  CHECK(values == std::vector<double>{0.5, 1.5, 4.5, 5.5, 8.5, 9.5});
  CHECK(std::count(target.begin(), target.end(), -1.0) == 18);
}

}  // namespace
}  // namespace vckpt
