// Arithmetic on sizes that come from files, peers and callers. Every operation says whether it fits in 64 bits;
// nothing wraps.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

namespace vckpt {

inline std::optional<std::uint64_t> checked_add(std::uint64_t a, std::uint64_t b) {
  std::uint64_t sum = 0;
  if (__builtin_add_overflow(a, b, &sum)) return std::nullopt;
  return sum;
}

inline std::optional<std::uint64_t> checked_multiply(std::uint64_t a, std::uint64_t b) {
  std::uint64_t product = 0;
  if (__builtin_mul_overflow(a, b, &product)) return std::nullopt;
  return product;
}

// Product of all factors; 1 for none. A zero factor gives 0 only if the product of the others fits too: a shape with
// an absurd dimension is refused even when it is empty.
inline std::optional<std::uint64_t> checked_product(std::span<const std::uint64_t> factors) {
  std::uint64_t product = 1;
  bool zero = false;
  for (const auto factor : factors) {
    if (factor == 0) {
      zero = true;
      continue;
    }
    const auto next = checked_multiply(product, factor);
    if (!next) return std::nullopt;
    product = *next;
  }
  return zero ? 0 : product;
}

constexpr std::uint64_t divide_up(std::uint64_t a, std::uint64_t b) { return a / b + (a % b != 0 ? 1 : 0); }
constexpr std::uint64_t round_up(std::uint64_t a, std::uint64_t grain) { return divide_up(a, grain) * grain; }

}  // namespace vckpt
