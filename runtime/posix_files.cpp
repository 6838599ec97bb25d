#include "runtime/posix_files.h"

#include <fcntl.h>
#include <unistd.h>

#include <limits>

namespace vckpt {
namespace {

constexpr std::uint64_t file_bytes_max = std::numeric_limits<off_t>::max();

// Takes the space now, so that a full disk shows before anything is written: 0, or the errno. File systems that cannot
// are fine: there a full disk shows at the write.
int reserve(const Descriptor& file, std::uint64_t length_bytes) {
  if (length_bytes == 0) return 0;
  const int result = uninterrupted(
      [&file, length_bytes] { return ::fallocate(file.number(), 0, 0, static_cast<off_t>(length_bytes)); });
  if (result == 0 || errno == EOPNOTSUPP || errno == ENOSYS) return 0;
  return errno;
}

}  // namespace

Result<DataFile> create_file(PosixRoot& root, const std::string& name, std::uint64_t length_bytes) {
  constexpr std::string_view operation = "create file";
  VCKPT_TRY(const auto place, root.open_place(name, operation));
  if (length_bytes > file_bytes_max) return root.failure(name, operation, EFBIG);
  DataFile file{name, length_bytes, Descriptor(uninterrupted([&place] {
                  return ::openat(place.folder.number(), place.last.c_str(),
                                  O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
                }))};
  if (!file.descriptor) return root.failure(name, operation, errno);
  if (const int error = reserve(file.descriptor, length_bytes); error != 0) {
    static_cast<void>(file.descriptor.close());
    static_cast<void>(::unlinkat(place.folder.number(), place.last.c_str(), 0));
    return root.failure(name, "reserve " + std::to_string(length_bytes) + " bytes", error);
  }
  return file;
}

Result<void> write(PosixRoot& root, const DataFile& file, std::uint64_t offset_bytes,
                   std::span<const std::byte> bytes) {
  const int error = write_fully(file.descriptor, offset_bytes, bytes);
  if (error != 0) return root.failure(file.name, "write", error);
  return {};
}

Result<void> finish(PosixRoot& root, DataFile& file) {
  VCKPT_TRY_VOID(root.sync(file.descriptor, file.name, "sync"));
  if (const int error = file.descriptor.close(); error != 0) return root.failure(file.name, "close", error);
  VCKPT_TRY(const auto place, root.open_place(file.name, "sync folder"));
  return root.sync(place.folder, file.name, "sync folder");
}

Result<void> abandon(PosixRoot& root, DataFile& file) {
  static_cast<void>(file.descriptor.close());
  return root.remove(file.name);
}

Result<std::uint64_t> file_length(PosixRoot& root, const std::string& name) {
  constexpr std::string_view operation = "length";
  VCKPT_TRY(const auto place, root.open_place(name, operation));
  VCKPT_TRY(const auto open, root.open_file(place, name, operation));
  return open.length_bytes;
}

Result<void> read(PosixRoot& root, const std::string& name, std::uint64_t offset_bytes, std::span<std::byte> target) {
  constexpr std::string_view operation = "read";
  VCKPT_TRY(const auto place, root.open_place(name, operation));
  VCKPT_TRY(const auto open, root.open_file(place, name, operation));
  const bool inside = offset_bytes <= open.length_bytes && target.size() <= open.length_bytes - offset_bytes;
  const ReadCount count = inside ? read_fully(open.file, offset_bytes, target) : ReadCount{};
  if (count.error != 0) return root.failure(name, operation, count.error);
  if (inside && count.bytes == target.size()) return {};
  return corrupt(root.full_name(name) + ": read: the file has " + std::to_string(open.length_bytes) + " bytes, " +
                 std::to_string(target.size()) + " were wanted at " + std::to_string(offset_bytes));
}

Result<Bytes> read_record(PosixRoot& root, const std::string& name, std::uint64_t bytes_max) {
  constexpr std::string_view operation = "read record";
  VCKPT_TRY(const auto place, root.open_place(name, operation));
  VCKPT_TRY(const auto open, root.open_file(place, name, operation));
  if (open.length_bytes > bytes_max) {
    return corrupt(root.full_name(name) + ": read record: it has " + std::to_string(open.length_bytes) +
                   " bytes, at most " + std::to_string(bytes_max) + " are allowed");
  }
  Bytes bytes(open.length_bytes);
  const ReadCount count = read_fully(open.file, 0, bytes);
  if (count.error != 0) return root.failure(name, operation, count.error);
  bytes.resize(count.bytes);
  return bytes;
}

}  // namespace vckpt
