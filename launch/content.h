// The true bytes of every tensor, by global element: read from the model's files, or made from name, element and salt.
// So any rank in any layout can fill what it holds and later check every byte of it, alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "launch/model_file.h"
#include "schema/layout.h"

namespace vckpt::launch {

// Threading: immutable.
class Content {
 public:
  // `salt` tells saves of made content apart; what stands in `file` (may be null) is the same for all.
  Content(std::shared_ptr<const ModelFile> file, std::uint64_t salt) : file_(std::move(file)), salt_(salt) {}

  // Bytes of a held piece, dense in its own row-major order.
  static std::uint64_t held_bytes(const TensorSpec& spec, const Held& held);
  void fill(const TensorSpec& spec, const Held& held, std::span<std::byte> packed) const;
  // The first byte that is not the true one, counted in the packed piece.
  std::optional<std::uint64_t> first_difference(const TensorSpec& spec, const Held& held,
                                                std::span<const std::byte> packed) const;

 private:
  // Bytes of the global tensor, in row-major order, from `offset_bytes`.
  void read(const TensorSpec& spec, std::uint64_t offset_bytes, std::span<std::byte> target) const;

  std::shared_ptr<const ModelFile> file_;
  std::uint64_t salt_;
};

}  // namespace vckpt::launch
