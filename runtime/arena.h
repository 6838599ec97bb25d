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
  Lease(Arena* arena, std::span<std::byte> bytes) : arena_(arena), bytes_(bytes) {}
  Arena* arena_ = nullptr;
  std::span<std::byte> bytes_;
};

// Threading: owned by one actor; leases are used on any thread but taken and returned on the actor's.
class Arena {
 public:
  explicit Arena(std::uint64_t budget_bytes);
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  // A page-aligned block; exhausted when the budget does not allow it now (free some and ask again) or ever (the message
  // names budget and request).
  Result<Lease> lease(std::uint64_t length_bytes);

  std::uint64_t budget_bytes() const { return budget_bytes_; }
  std::uint64_t leased_bytes() const { return leased_bytes_; }
  std::uint64_t peak_bytes() const { return peak_bytes_; }
  void reset_peak() { peak_bytes_ = leased_bytes_; }

 private:
  friend class Lease;
  void give_back(std::span<std::byte> bytes);

  struct Block {
    std::byte* data;
    std::uint64_t length_bytes;
  };
  std::uint64_t budget_bytes_;
  std::uint64_t leased_bytes_ = 0;
  std::uint64_t kept_bytes_ = 0;  // leased and free blocks together; at most the budget
  std::uint64_t peak_bytes_ = 0;
  std::vector<Block> free_;
};

}  // namespace vckpt
