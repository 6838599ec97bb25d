// Staging memory with a byte budget: blocks are leased, used and given back; the budget is never exceeded, and the peak
// is known. Memory is kept and reused, not returned to the system between saves.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "schema/result.h"

namespace vckpt {

class Arena;

constexpr std::uint64_t arena_page_bytes = 4096;

// A block of staging memory, returned to its arena when destroyed. Moved, not copied.
class Lease {
 public:
  Lease() = default;
  Lease(Lease&& other) noexcept;
  Lease& operator=(Lease&& other) noexcept;
  ~Lease();
  std::span<std::byte> bytes() const { return bytes_; }
  explicit operator bool() const { return arena_ != nullptr; }

 private:
  friend class Arena;
  Lease(Arena* arena, std::span<std::byte> bytes, std::uint64_t block_bytes)
      : arena_(arena), bytes_(bytes), block_bytes_(block_bytes) {}
  void give_back();

  Arena* arena_ = nullptr;
  std::span<std::byte> bytes_;
  std::uint64_t block_bytes_ = 0;  // of the whole block that `bytes_` begins
};

// Threading: owned by one actor; leases are used on any thread but taken and returned on the actor's.
class Arena {
 public:
  explicit Arena(std::uint64_t budget_bytes);
  // Every lease has been returned.
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  // A block that starts on a page; exhausted when the budget does not allow it now (free some and ask again) or ever
  // (the message names budget and request). Blocks are whole pages and count as such: a request costs charged_bytes of
  // it. What the bytes hold is unspecified.
  Result<Lease> lease(std::uint64_t length_bytes);

  // What a request of this length takes from the budget: its length in whole pages.
  static std::uint64_t charged_bytes(std::uint64_t length_bytes);

  std::uint64_t budget_bytes() const { return budget_bytes_; }
  std::uint64_t leased_bytes() const { return leased_bytes_; }
  std::uint64_t peak_bytes() const { return peak_bytes_; }
  void reset_peak() { peak_bytes_ = leased_bytes_; }

 private:
  friend class Lease;
  struct Block {
    std::byte* data;
    std::uint64_t length_bytes;
  };
  void give_back(Block block);
  std::byte* take_free(std::uint64_t length_bytes);
  void unmap_free(std::uint64_t kept_bytes_max);

  std::uint64_t budget_bytes_;
  std::uint64_t leased_bytes_ = 0;
  std::uint64_t kept_bytes_ = 0;  // leased and free blocks together; at most the budget
  std::uint64_t peak_bytes_ = 0;
  std::vector<Block> free_;
};

}  // namespace vckpt
