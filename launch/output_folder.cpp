#include "launch/output_folder.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "runtime/descriptor.h"

namespace vckpt::launch {

namespace {

Error system_error(const std::string& path, int number) {
  const auto text = path + ": " + std::strerror(number);
  switch (number) {
    case ENOENT: return not_found(text);
    case ENOSPC:
    case EDQUOT:
    case EFBIG: return exhausted(text);
    case EIO: return unavailable(text);
    default: return invalid(text);
  }
}

std::string parent_of(const std::string& path) {
  const auto parent = std::filesystem::path(path).parent_path().string();
  return parent.empty() ? "." : parent;
}

Result<void> sync_folder(const std::string& path) {
  const Descriptor folder(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder || ::fsync(folder.number()) != 0) return system_error(path, errno);
  return {};
}

}  // namespace

Result<std::unique_ptr<OutputFile>> OutputFile::create(const std::string& path, std::uint64_t length_bytes) {
  VCKPT_ASSERT(length_bytes > 0);
  const Descriptor file(::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  if (!file) return system_error(path, errno);
  const auto reserved = ::posix_fallocate(file.number(), 0, static_cast<off_t>(length_bytes));
  if (reserved != 0) return system_error(path, reserved);
  void* memory = ::mmap(nullptr, length_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.number(), 0);
  if (memory == MAP_FAILED) return system_error(path, errno);
  return std::unique_ptr<OutputFile>(new OutputFile(path, {static_cast<std::byte*>(memory), length_bytes}));
}

OutputFile::~OutputFile() { ::munmap(bytes_.data(), bytes_.size()); }

Result<void> OutputFile::sync() {
  if (::msync(bytes_.data(), bytes_.size(), MS_SYNC) != 0) return system_error(path_, errno);
  return {};
}

Result<std::unique_ptr<OutputFolder>> OutputFolder::create(const std::string& target) {
  auto path = target;
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  struct stat status {};
  if (::lstat(path.c_str(), &status) == 0) return invalid(path + ": exists already; nothing is overwritten");
  if (errno != ENOENT) return system_error(path, errno);
  auto folder = parent_of(path) + "/.vckpt-export-" + std::to_string(::getpid());
  if (::mkdir(folder.c_str(), 0777) != 0) return system_error(path, errno);
  return std::unique_ptr<OutputFolder>(new OutputFolder(std::move(path), std::move(folder)));
}

OutputFolder::~OutputFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

Result<void> OutputFolder::move_folder() {
  VCKPT_TRY_VOID(sync_folder(folder_));
  if (::rename(folder_.c_str(), target_.c_str()) != 0) return system_error(target_, errno);
  return sync_folder(parent_of(target_));
}

Result<void> OutputFolder::move_file(const std::string& name) {
  // RENAME_NOREPLACE is not everywhere; a check and a rename are enough against mistakes.
  struct stat status {};
  if (::lstat(target_.c_str(), &status) == 0) return invalid(target_ + ": exists already; nothing is overwritten");
  if (::rename(file(name).c_str(), target_.c_str()) != 0) return system_error(target_, errno);
  return sync_folder(parent_of(target_));
}

}  // namespace vckpt::launch
