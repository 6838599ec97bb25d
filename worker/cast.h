// Element casts of a load, and copies between two strided lists of elements that cast on the way. Among f64, f32, f16
// and bf16 values are rounded to nearest, ties to even (once: f64 to f16 does not pass through f32; what is too large
// becomes infinite, NaN stays NaN). Integers and bool widen only where every value is kept. All else is refused.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "runtime/memory.h"
#include "schema/dtype.h"

namespace vckpt {

// Also true for equal types.
bool can_cast(DType from, DType to);

// `count` elements; neither side needs to be aligned. can_cast(from, to).
void cast_elements(DType from, const std::byte* source, DType to, std::byte* target, std::uint64_t count);

// Moves elements from one copy list to another, both in packed order and of equally many elements; every run of a list
// holds whole elements of its type.
void move_elements(DType from, std::span<const Copy> source, DType to, std::span<const Copy> target);

}  // namespace vckpt
