// File descriptors with an owner, and whole reads and writes through them.
#pragma once

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <span>

namespace vckpt {

// An open file or folder, closed when destroyed. Moved, not copied.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int number) : number_(number) {}
  Descriptor(Descriptor&& other) noexcept;
  Descriptor& operator=(Descriptor&& other) noexcept;
  ~Descriptor();
  int number() const { return number_; }
  explicit operator bool() const { return number_ >= 0; }
  // Closes now: 0, or the errno.
  int close();

 private:
  int number_ = -1;
};

// Calls `system_call` until it ends without being interrupted; interruptions are bounded, then EINTR stands.
template <typename SystemCall>
auto uninterrupted(SystemCall system_call) {
  constexpr int interruptions_max = 1000;
  auto result = system_call();
  for (int i = 0; i < interruptions_max && result < 0 && errno == EINTR; ++i) result = system_call();
  return result;
}

// Writes all of it, over as many calls as it takes: 0, or the errno.
int write_fully(const Descriptor& file, std::uint64_t offset_bytes, std::span<const std::byte> bytes);

struct ReadCount {
  std::size_t bytes = 0;  // less than asked for at the end of the file
  int error = 0;          // errno
};
ReadCount read_fully(const Descriptor& file, std::uint64_t offset_bytes, std::span<std::byte> target);

}  // namespace vckpt
