// Memory that the host must not dereference: pages without access, opened only around a transport's own copies and a
// test's explicit reads and writes. Stands for device memory; touching it elsewhere is a segmentation fault.
#pragma once

#include <cstddef>
#include <span>

namespace vckpt {

class GuardedMemory {
 public:
  // Address space for `budget_bytes`; pages are used only when written.
  explicit GuardedMemory(std::size_t budget_bytes);
  ~GuardedMemory();
  GuardedMemory(const GuardedMemory&) = delete;
  GuardedMemory& operator=(const GuardedMemory&) = delete;

  // Zero at first; lives as long as this.
  std::span<std::byte> allocate(std::size_t length_bytes);

  // While it lives all of the memory may be touched.
  class Access {
   public:
    explicit Access(GuardedMemory* memory);  // null: nothing to open
    ~Access();
    Access(const Access&) = delete;
    Access& operator=(const Access&) = delete;

   private:
    GuardedMemory* memory_;
  };

 private:
  std::span<std::byte> pages_;
  std::size_t used_bytes_ = 0;
  int open_count_ = 0;
};

}  // namespace vckpt
