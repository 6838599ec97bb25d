#include "tests/support/guarded_memory.h"

#include <sys/mman.h>

#include "schema/checked.h"
#include "schema/result.h"

namespace vckpt {
namespace {

constexpr std::size_t page_bytes = 4096;
constexpr std::size_t alignment_bytes = 16;

}  // namespace

GuardedMemory::GuardedMemory(std::size_t budget_bytes) {
  const std::size_t length_bytes = round_up(budget_bytes, page_bytes);
  void* const pages = ::mmap(nullptr, length_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  VCKPT_ASSERT(pages != MAP_FAILED);
  pages_ = {static_cast<std::byte*>(pages), length_bytes};
}

GuardedMemory::~GuardedMemory() { ::munmap(pages_.data(), pages_.size()); }

std::span<std::byte> GuardedMemory::allocate(std::size_t length_bytes) {
  const std::size_t begin_bytes = used_bytes_;
  used_bytes_ += round_up(length_bytes, alignment_bytes);
  VCKPT_ASSERT(used_bytes_ <= pages_.size());
  return pages_.subspan(begin_bytes, length_bytes);
}

GuardedMemory::Access::Access(GuardedMemory* memory) : memory_(memory) {
  if (memory_ == nullptr || memory_->open_count_++ > 0) return;
  VCKPT_ASSERT(::mprotect(memory_->pages_.data(), memory_->pages_.size(), PROT_READ | PROT_WRITE) == 0);
}

GuardedMemory::Access::~Access() {
  if (memory_ == nullptr || --memory_->open_count_ > 0) return;
  VCKPT_ASSERT(::mprotect(memory_->pages_.data(), memory_->pages_.size(), PROT_NONE) == 0);
}

}  // namespace vckpt
