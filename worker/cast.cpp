#include "worker/cast.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

namespace vckpt {
namespace {

template <typename T>
T load(const std::byte* source) {
  T value;
  std::memcpy(&value, source, sizeof value);
  return value;
}

template <typename T>
void store(std::byte* target, T value) {
  std::memcpy(target, &value, sizeof value);
}

// Shifts out `shift` bits (1..63), rounding to nearest, ties to even.
std::uint64_t shift_rounded(std::uint64_t value, int shift) {
  if (shift > 63) return 0;
  const std::uint64_t kept = value >> shift;
  const std::uint64_t rest = value & ((std::uint64_t{1} << shift) - 1);
  const std::uint64_t half = std::uint64_t{1} << (shift - 1);
  return kept + (rest > half || (rest == half && (kept & 1) != 0) ? 1 : 0);
}

// A double as a 16-bit float of `exponent_bits` and `mantissa_bits`.
std::uint16_t narrow(double value, int exponent_bits, int mantissa_bits) {
  const auto raw = std::bit_cast<std::uint64_t>(value);
  const auto sign = static_cast<std::uint16_t>(raw >> 63 << 15);
  const int exponent = static_cast<int>(raw >> 52 & 0x7FF) - 1023;
  const std::uint64_t fraction = raw & 0xF'FFFF'FFFF'FFFF;
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const std::uint64_t infinity = ((std::uint64_t{1} << exponent_bits) - 1) << mantissa_bits;
  if (exponent == 1024) {
    if (fraction == 0) return static_cast<std::uint16_t>(sign | infinity);
    const std::uint64_t quiet = std::uint64_t{1} << (mantissa_bits - 1);
    return static_cast<std::uint16_t>(sign | infinity | quiet | fraction >> (52 - mantissa_bits));
  }
  const std::uint64_t significand = fraction | std::uint64_t{1} << 52;
  std::uint64_t magnitude = 0;
  if (exponent >=
      1 - bias) {  // normal; a carry out of the mantissa moves on to the exponent, and at the end to infinity
    magnitude = shift_rounded(significand, 52 - mantissa_bits);
    magnitude += static_cast<std::uint64_t>(exponent + bias - 1) << mantissa_bits;
  } else {
    magnitude = shift_rounded(significand, 52 - mantissa_bits + (1 - bias - exponent));
  }
  return static_cast<std::uint16_t>(sign | std::min(magnitude, infinity));
}

double widen_half(std::uint16_t half) {
  const int exponent = half >> 10 & 31;
  const int fraction = half & 1023;
  double value = 0;
  if (exponent == 31) {
    value = fraction == 0 ? HUGE_VAL : std::bit_cast<double>(0x7FF8000000000000 | std::uint64_t(fraction) << 42);
  } else if (exponent == 0) {
    value = std::ldexp(fraction, -24);
  } else {
    value = std::ldexp(fraction + 1024, exponent - 25);
  }
  return std::copysign(value, (half & 0x8000) != 0 ? -1.0 : 1.0);
}

struct F16 {
  static double read(const std::byte* source) { return widen_half(load<std::uint16_t>(source)); }
  static void write(std::byte* target, double value) { store(target, narrow(value, 5, 10)); }
  static constexpr std::size_t bytes = 2;
};

struct BF16 {
  static double read(const std::byte* source) {
    return std::bit_cast<float>(static_cast<std::uint32_t>(load<std::uint16_t>(source)) << 16);
  }
  static void write(std::byte* target, double value) { store(target, narrow(value, 8, 7)); }
  static constexpr std::size_t bytes = 2;
};

template <typename T>
struct Native {
  static T read(const std::byte* source) { return load<T>(source); }
  template <typename From>
  static void write(std::byte* target, From value) {
    store(target, static_cast<T>(value));
  }
  static constexpr std::size_t bytes = sizeof(T);
};

template <typename From, typename To>
void convert(const std::byte* source, std::byte* target, std::uint64_t count) {
  for (std::uint64_t i = 0; i < count; ++i) To::write(target + i * To::bytes, From::read(source + i * From::bytes));
}

// Calls `use` with the element type of a dtype that casts know.
template <typename Use>
void with_type(DType dtype, Use use) {
  switch (dtype) {
    case DType::boolean:
    case DType::u8: return use(Native<std::uint8_t>{});
    case DType::i8: return use(Native<std::int8_t>{});
    case DType::u16: return use(Native<std::uint16_t>{});
    case DType::i16: return use(Native<std::int16_t>{});
    case DType::u32: return use(Native<std::uint32_t>{});
    case DType::i32: return use(Native<std::int32_t>{});
    case DType::u64: return use(Native<std::uint64_t>{});
    case DType::i64: return use(Native<std::int64_t>{});
    case DType::f16: return use(F16{});
    case DType::bf16: return use(BF16{});
    case DType::f32: return use(Native<float>{});
    case DType::f64: return use(Native<double>{});
    default: VCKPT_ASSERT(false);
  }
}

// How many bits of an integer a type holds exactly, the sign apart; `is_signed` of floats too.
struct Exact {
  int integer_bits = 0;  // 0: not a type that casts know
  bool is_signed = false;
  bool is_float = false;
};

Exact exact(DType dtype) {
  switch (dtype) {
    case DType::boolean: return {1, false, false};
    case DType::u8: return {8, false, false};
    case DType::i8: return {7, true, false};
    case DType::u16: return {16, false, false};
    case DType::i16: return {15, true, false};
    case DType::u32: return {32, false, false};
    case DType::i32: return {31, true, false};
    case DType::u64: return {64, false, false};
    case DType::i64: return {63, true, false};
    case DType::f16: return {11, true, true};
    case DType::bf16: return {8, true, true};
    case DType::f32: return {24, true, true};
    case DType::f64: return {53, true, true};
    default: return {};
  }
}

// Walks a copy list run by run.
class Cursor {
 public:
  explicit Cursor(std::span<const Copy> copies) : copies_(copies) { skip(); }
  bool done() const { return copies_.empty(); }
  std::uint64_t run_left_bytes() const { return copies_.front().run_bytes - at_; }
  std::byte* data() const {
    return copies_.front().data + static_cast<std::int64_t>(row_) * copies_.front().stride_bytes + at_;
  }
  void advance(std::uint64_t bytes) {
    at_ += bytes;
    skip();
  }

 private:
  void skip() {
    while (!copies_.empty() && (at_ == copies_.front().run_bytes || row_ == copies_.front().rows)) {
      at_ = 0;
      if (++row_ < copies_.front().rows && copies_.front().run_bytes != 0) return;
      row_ = 0;
      copies_ = copies_.subspan(1);
    }
  }
  std::span<const Copy> copies_;
  std::uint64_t row_ = 0;
  std::uint64_t at_ = 0;
};

}  // namespace

bool can_cast(DType from, DType to) {
  if (from == to) return true;
  const Exact a = exact(from);
  const Exact b = exact(to);
  if (a.integer_bits == 0 || b.integer_bits == 0 || to == DType::boolean) return false;
  if (a.is_float) return b.is_float;
  return a.integer_bits <= b.integer_bits && (b.is_signed || !a.is_signed);
}

void cast_elements(DType from, const std::byte* source, DType to, std::byte* target, std::uint64_t count) {
  if (from == to) {
    std::memcpy(target, source, count * bits(from) / 8);
    return;
  }
  with_type(from, [&](auto source_type) {
    with_type(to,
              [&](auto target_type) { convert<decltype(source_type), decltype(target_type)>(source, target, count); });
  });
}

void move_elements(DType from, std::span<const Copy> source, DType to, std::span<const Copy> target) {
  const std::uint64_t source_bytes = std::max<std::uint64_t>(bits(from) / 8, 1);
  const std::uint64_t target_bytes = std::max<std::uint64_t>(bits(to) / 8, 1);
  Cursor reader(source);
  Cursor writer(target);
  while (!reader.done() && !writer.done()) {
    if (from == to) {
      const std::uint64_t length = std::min(reader.run_left_bytes(), writer.run_left_bytes());
      std::memcpy(writer.data(), reader.data(), length);
      reader.advance(length);
      writer.advance(length);
      continue;
    }
    const std::uint64_t count =
        std::min(reader.run_left_bytes() / source_bytes, writer.run_left_bytes() / target_bytes);
    VCKPT_ASSERT(count > 0);
    cast_elements(from, reader.data(), to, writer.data(), count);
    reader.advance(count * source_bytes);
    writer.advance(count * target_bytes);
  }
}

}  // namespace vckpt
