#include "runtime/arena.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "schema/checked.h"

namespace vckpt {

Lease::Lease(Lease&& other) noexcept
    : arena_(std::exchange(other.arena_, nullptr)),
      bytes_(std::exchange(other.bytes_, {})),
      block_bytes_(std::exchange(other.block_bytes_, 0)) {}

Lease& Lease::operator=(Lease&& other) noexcept {
  if (this == &other) return *this;
  give_back();
  arena_ = std::exchange(other.arena_, nullptr);
  bytes_ = std::exchange(other.bytes_, {});
  block_bytes_ = std::exchange(other.block_bytes_, 0);
  return *this;
}

Lease::~Lease() { give_back(); }

void Lease::give_back() {
  if (arena_ == nullptr) return;
  std::exchange(arena_, nullptr)->give_back(Arena::Block{bytes_.data(), block_bytes_});
  bytes_ = {};
}

Arena::Arena(std::uint64_t budget_bytes) : budget_bytes_(budget_bytes) {}

Arena::~Arena() {
  VCKPT_ASSERT(leased_bytes_ == 0);
  unmap_free(0);
}

std::uint64_t Arena::charged_bytes(std::uint64_t length_bytes) {
  constexpr std::uint64_t last_page = UINT64_MAX / arena_page_bytes * arena_page_bytes;
  return length_bytes > last_page ? UINT64_MAX : round_up(length_bytes, arena_page_bytes);
}

Result<Lease> Arena::lease(std::uint64_t length_bytes) {
  const std::uint64_t block_bytes = charged_bytes(length_bytes);
  if (block_bytes > budget_bytes_) {
    return exhausted("staging of " + std::to_string(length_bytes) + " bytes can never fit the budget of " +
                     std::to_string(budget_bytes_) + " bytes");
  }
  if (block_bytes > budget_bytes_ - leased_bytes_) {
    return exhausted("staging of " + std::to_string(length_bytes) +
                     " bytes does not fit now: " + std::to_string(leased_bytes_) + " of the budget of " +
                     std::to_string(budget_bytes_) + " bytes are in use");
  }
  if (block_bytes == 0) return Lease(this, {}, 0);
  std::byte* data = take_free(block_bytes);
  if (data == nullptr) {
    unmap_free(budget_bytes_ - block_bytes);
    void* mapped = ::mmap(nullptr, block_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapped == MAP_FAILED) {
      return exhausted("staging of " + std::to_string(length_bytes) + " bytes: " + std::strerror(errno));
    }
    // Huge pages make the first touch several times cheaper; a kernel without them serves small ones.
    static_cast<void>(::madvise(mapped, block_bytes, MADV_HUGEPAGE));
    data = static_cast<std::byte*>(mapped);
    kept_bytes_ += block_bytes;
  }
  leased_bytes_ += block_bytes;
  peak_bytes_ = std::max(peak_bytes_, leased_bytes_);
  return Lease(this, std::span(data, length_bytes), block_bytes);
}

// The start of the smallest free block that holds the request; what it does not need stays free as a block of its own.
std::byte* Arena::take_free(std::uint64_t length_bytes) {
  auto best = free_.end();
  for (auto block = free_.begin(); block != free_.end(); ++block) {
    if (block->length_bytes < length_bytes) continue;
    if (best == free_.end() || block->length_bytes < best->length_bytes) best = block;
  }
  if (best == free_.end()) return nullptr;
  std::byte* data = best->data;
  if (best->length_bytes == length_bytes) {
    *best = free_.back();
    free_.pop_back();
  } else {
    best->data += length_bytes;
    best->length_bytes -= length_bytes;
  }
  return data;
}

// Unmaps free blocks until at most `kept_bytes_max` are kept, leased ones included.
void Arena::unmap_free(std::uint64_t kept_bytes_max) {
  while (kept_bytes_ > kept_bytes_max && !free_.empty()) {
    const Block block = free_.back();
    free_.pop_back();
    VCKPT_ASSERT(::munmap(block.data, block.length_bytes) == 0);
    kept_bytes_ -= block.length_bytes;
  }
}

void Arena::give_back(Block block) {
  if (block.length_bytes == 0) return;
  leased_bytes_ -= block.length_bytes;
  free_.push_back(block);
}

}  // namespace vckpt
