#include "runtime/descriptor.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

namespace vckpt {
namespace {

constexpr std::size_t call_bytes_max = 1 << 30;  // the kernel moves a little less than 2 GiB at once

}  // namespace

Descriptor::Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}

Descriptor& Descriptor::operator=(Descriptor&& other) noexcept {
  if (this == &other) return *this;
  static_cast<void>(close());
  number_ = std::exchange(other.number_, -1);
  return *this;
}

Descriptor::~Descriptor() { static_cast<void>(close()); }

int Descriptor::close() {
  if (number_ < 0) return 0;
  // Linux has closed it whatever the answer; an interrupted close is closed too.
  if (::close(std::exchange(number_, -1)) == 0 || errno == EINTR) return 0;
  return errno;
}

int write_fully(const Descriptor& file, std::uint64_t offset_bytes, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const auto count = uninterrupted([&file, offset_bytes, bytes] {
      return ::pwrite(file.number(), bytes.data(), std::min(bytes.size(), call_bytes_max),
                      static_cast<off_t>(offset_bytes));
    });
    if (count < 0) return errno;
    if (count == 0) return EIO;
    bytes = bytes.subspan(static_cast<std::size_t>(count));
    offset_bytes += static_cast<std::uint64_t>(count);
  }
  return 0;
}

ReadCount read_fully(const Descriptor& file, std::uint64_t offset_bytes, std::span<std::byte> target) {
  ReadCount done;
  while (done.bytes < target.size()) {
    const auto rest = target.subspan(done.bytes);
    const auto count = uninterrupted([&file, rest, at = offset_bytes + done.bytes] {
      return ::pread(file.number(), rest.data(), std::min(rest.size(), call_bytes_max), static_cast<off_t>(at));
    });
    if (count < 0) done.error = errno;
    if (count <= 0) break;
    done.bytes += static_cast<std::size_t>(count);
  }
  return done;
}

}  // namespace vckpt
