#include "launch/content.h"

#include <algorithm>
#include <cstring>
#include <vector>

namespace vckpt::launch {

namespace {

// A run of bytes of the global tensor; runs of a piece follow one another in the packed piece.
struct Run {
  std::uint64_t offset_bytes;
  std::uint64_t length_bytes;
};

void add_runs(std::vector<Run>& runs, const Dims& shape, const Box& box) {
  // Dimensions behind `inner` are held whole: one index of `inner` is one run together with them.
  auto inner = shape.size() - 1;
  std::uint64_t run = box.sizes[inner];
  while (inner > 0 && box.sizes[inner] == shape[inner]) run *= box.sizes[--inner];
  std::vector<std::uint64_t> strides(shape.size(), 1);
  for (auto dim = shape.size() - 1; dim > 0; --dim) strides[dim - 1] = strides[dim] * shape[dim];
  std::uint64_t base = 0;
  for (std::size_t dim = 0; dim < shape.size(); ++dim) base += box.offsets[dim] * strides[dim];
  std::uint64_t rows = 1;
  for (std::size_t dim = 0; dim < inner; ++dim) rows *= box.sizes[dim];
  std::vector<std::uint64_t> index(inner, 0);
  for (std::uint64_t row = 0; row < rows; ++row) {
    std::uint64_t offset = base;
    for (std::size_t dim = 0; dim < inner; ++dim) offset += index[dim] * strides[dim];
    runs.push_back({offset, run});
    for (auto dim = inner; dim > 0 && ++index[dim - 1] == box.sizes[dim - 1]; --dim) index[dim - 1] = 0;
  }
}

std::vector<Run> runs_of(const TensorSpec& spec, const Held& held) {
  const auto boxes = held.range ? to_boxes(held.box, *held.range) : std::vector<Box>{held.box};
  std::vector<Run> runs;
  for (const auto& box : boxes) {
    if (!empty(box)) add_runs(runs, to_byte_shape(spec), to_byte_box(spec, box));
  }
  return runs;
}

std::uint64_t mix(std::uint64_t z) {
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
  return z ^ (z >> 31);
}

std::uint64_t fnv1a(std::string_view text) {
  std::uint64_t hash = 0xCBF29CE484222325;
  for (const auto character : text) hash = (hash ^ static_cast<unsigned char>(character)) * 0x100000001B3;
  return hash;
}

// Byte i of element g is the low byte of splitmix64's finalizer over seed + g * golden + i * lane.
void make(const TensorSpec& spec, std::uint64_t salt, std::uint64_t offset_bytes, std::span<std::byte> target) {
  constexpr std::uint64_t golden = 0x9E3779B97F4A7C15;
  constexpr std::uint64_t lane = 0xD1B54A32D192ED03;
  const auto seed = fnv1a(spec.fqn) + salt * 0xA0761D6478BD642F;
  const std::uint64_t width = bits(spec.dtype) / 8;
  auto element = offset_bytes / width;
  auto byte = offset_bytes % width;
  for (auto& out : target) {
    out = static_cast<std::byte>(mix(seed + element * golden + byte * lane));
    if (++byte == width) {
      byte = 0;
      ++element;
    }
  }
}

}  // namespace

std::uint64_t Content::held_bytes(const TensorSpec& spec, const Held& held) {
  if (!held.range) return box_bytes(spec.dtype, held.box);
  return box_bytes(spec.dtype, Box{{0}, {held.range->end - held.range->begin}});
}

void Content::read(const TensorSpec& spec, std::uint64_t offset_bytes, std::span<std::byte> target) const {
  const auto stored = file_ ? file_->bytes(spec.fqn) : std::span<const std::byte>();
  if (stored.empty()) {
    VCKPT_ASSERT(bits(spec.dtype) % 8 == 0);
    make(spec, salt_, offset_bytes, target);
  } else {
    VCKPT_ASSERT(offset_bytes + target.size() <= stored.size());
    std::memcpy(target.data(), stored.data() + offset_bytes, target.size());
  }
}

void Content::fill(const TensorSpec& spec, const Held& held, std::span<std::byte> packed) const {
  std::uint64_t done = 0;
  for (const auto& run : runs_of(spec, held)) {
    read(spec, run.offset_bytes, packed.subspan(done, run.length_bytes));
    done += run.length_bytes;
  }
  VCKPT_ASSERT(done == packed.size());
}

std::optional<std::uint64_t> Content::first_difference(const TensorSpec& spec, const Held& held,
                                                       std::span<const std::byte> packed) const {
  std::uint64_t done = 0;
  std::vector<std::byte> truth;
  for (const auto& run : runs_of(spec, held)) {
    constexpr std::uint64_t at_once_bytes = 1 << 20;
    for (std::uint64_t begin = 0; begin < run.length_bytes; begin += at_once_bytes) {
      truth.resize(std::min(at_once_bytes, run.length_bytes - begin));
      read(spec, run.offset_bytes + begin, truth);
      const auto here = packed.subspan(done, truth.size());
      const auto differs = std::mismatch(truth.begin(), truth.end(), here.begin()).first;
      if (differs != truth.end()) return done + static_cast<std::uint64_t>(differs - truth.begin());
      done += truth.size();
    }
  }
  return std::nullopt;
}

}  // namespace vckpt::launch
