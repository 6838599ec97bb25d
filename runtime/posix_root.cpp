#include "runtime/posix_root.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <memory>

namespace vckpt {
namespace {

constexpr int folder_flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
constexpr int remove_tries_max = 4;

Code code_of(int error) {
  switch (error) {
    case ENOENT: return Code::not_found;
    case EACCES:
    case EPERM:
    case EROFS:
    case ENOTDIR:
    case EISDIR:
    case ELOOP:
    case EEXIST:
    case EINVAL:
    case ENXIO:
    case ENAMETOOLONG:
    case EOPNOTSUPP:
    case ENOSYS: return Code::invalid;
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
    case EMLINK:
    case EMFILE:
    case ENFILE:
    case ENOMEM: return Code::exhausted;
    default: return Code::unavailable;
  }
}

struct CloseFolder {
  void operator()(DIR* folder) const { ::closedir(folder); }
};
using FolderStream = std::unique_ptr<DIR, CloseFolder>;

// Names in a folder, but for `.` and `..`: 0, or the errno. The stream is `folder`'s own copy.
int read_names(const Descriptor& folder, std::vector<std::string>& names) {
  const int copy = ::openat(folder.number(), ".", folder_flags);
  if (copy < 0) return errno;
  const FolderStream stream(::fdopendir(copy));
  if (!stream) return errno;
  for (;;) {
    errno = 0;
    const dirent* entry = ::readdir(stream.get());
    if (entry == nullptr) return errno;
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
  }
}

// Removes a file or a whole folder without following links: 0, or the errno. A name that is gone already is fine.
int remove_tree(const Descriptor& parent, const std::string& name, std::size_t depth) {
  if (::unlinkat(parent.number(), name.c_str(), 0) == 0 || errno == ENOENT) return 0;
  const int file_error = errno;
  if (file_error != EISDIR && file_error != EPERM) return file_error;
  if (depth > name_components_max) return ELOOP;
  for (int attempt = 0; attempt < remove_tries_max; ++attempt) {
    const Descriptor folder(::openat(parent.number(), name.c_str(), folder_flags));
    if (!folder) return errno == ENOENT ? 0 : errno == ENOTDIR ? file_error : errno;
    std::vector<std::string> names;
    if (const int error = read_names(folder, names); error != 0) return error;
    for (const auto& inner : names) {
      if (const int error = remove_tree(folder, inner, depth + 1); error != 0) return error;
    }
    if (::unlinkat(parent.number(), name.c_str(), AT_REMOVEDIR) == 0 || errno == ENOENT) return 0;
    // Somebody still writes into it: what came is removed too.
    if (errno != ENOTEMPTY && errno != EEXIST) return errno;
  }
  return EBUSY;
}

}  // namespace

PosixRoot::PosixRoot(std::string path) : path_(std::move(path)) {}

std::string PosixRoot::full_name(const std::string& name) const { return name.empty() ? path_ : path_ + "/" + name; }

Error PosixRoot::failure(const std::string& name, std::string_view operation, int error) const {
  std::string reason = std::strerror(error);
  if (!name.empty() && (error == ENOTDIR || error == ELOOP)) reason += " (links are not followed)";
  return Error{code_of(error), full_name(name) + ": " + std::string(operation) + ": " + reason};
}

Result<std::vector<std::string>> PosixRoot::components_of(const std::string& name, std::string_view operation) const {
  auto components = split_name(name);
  if (!components) return components.error().with_context(path_ + ": " + std::string(operation));
  return components;
}

Result<int> PosixRoot::root(std::string_view operation) {
  const std::lock_guard lock(mutex_);
  // The path to the root is the user's and may hold links; below it none is followed.
  if (!root_) root_ = Descriptor(::open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!root_) return failure("", operation, errno);
  return root_.number();
}

Result<void> PosixRoot::make_root() {
  std::filesystem::path made;
  for (const auto& component : std::filesystem::path(path_)) {
    const std::filesystem::path parent = made.empty() ? "." : made;
    made /= component;
    if (::mkdir(made.c_str(), 0777) != 0) {
      const int error = errno;
      // Folders that are there already need no permission to make them.
      if (error == EEXIST || ::access(made.c_str(), F_OK) == 0) continue;
      return Error{code_of(error), made.string() + ": create folder: " + std::strerror(error)};
    }
    const Descriptor folder(::open(parent.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!folder || ::fsync(folder.number()) != 0) {
      return Error{code_of(errno), parent.string() + ": sync folder: " + std::strerror(errno)};
    }
  }
  return {};
}

Result<Descriptor> PosixRoot::descend(const std::vector<std::string>& components, const std::string& name,
                                      std::string_view operation) {
  VCKPT_TRY(const int top, root(operation));
  Descriptor folder(::openat(top, ".", folder_flags));
  if (!folder) return failure(name, operation, errno);
  for (const auto& component : components) {
    Descriptor next(::openat(folder.number(), component.c_str(), folder_flags));
    if (!next) return failure(name, operation, errno);
    folder = std::move(next);
  }
  return folder;
}

Result<Descriptor> PosixRoot::open_folder(const std::string& name, std::string_view operation) {
  VCKPT_TRY(const auto components, components_of(name, operation));
  return descend(components, name, operation);
}

Result<PosixRoot::Place> PosixRoot::open_place(const std::string& name, std::string_view operation) {
  VCKPT_TRY(auto components, components_of(name, operation));
  if (components.empty()) return invalid(path_ + ": " + std::string(operation) + ": the root is no file");
  Place place;
  place.last = std::move(components.back());
  components.pop_back();
  VCKPT_TRY(place.folder, descend(components, name, operation));
  return place;
}

Result<PosixRoot::OpenFile> PosixRoot::open_file(const Place& place, const std::string& name,
                                                 std::string_view operation) {
  OpenFile open;
  // Non-blocking, so that a pipe in a file's place is refused instead of waited for.
  open.file = Descriptor(uninterrupted([&place] {
    return ::openat(place.folder.number(), place.last.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  }));
  if (!open.file) return failure(name, operation, errno);
  struct stat status {};
  if (::fstat(open.file.number(), &status) != 0) return failure(name, operation, errno);
  if (!S_ISREG(status.st_mode)) return invalid(full_name(name) + ": " + std::string(operation) + ": no regular file");
  open.length_bytes = static_cast<std::uint64_t>(status.st_size);
  return open;
}

Result<void> PosixRoot::sync(const Descriptor& descriptor, const std::string& name, std::string_view operation) const {
  // Never repeated, not even when interrupted: a second fsync may report success for pages that were lost.
  if (::fsync(descriptor.number()) != 0) return failure(name, operation, errno);
  return {};
}

Result<void> PosixRoot::create_folder(const std::string& name) {
  constexpr std::string_view operation = "create folder";
  VCKPT_TRY(const auto components, components_of(name, operation));
  VCKPT_TRY_VOID(make_root());
  VCKPT_TRY(Descriptor folder, descend({}, "", operation));
  for (const auto& component : components) {
    Descriptor next(::openat(folder.number(), component.c_str(), folder_flags));
    if (!next && errno == ENOENT) {
      if (::mkdirat(folder.number(), component.c_str(), 0777) != 0 && errno != EEXIST) {
        return failure(name, operation, errno);
      }
      next = Descriptor(::openat(folder.number(), component.c_str(), folder_flags));
    }
    if (!next) return failure(name, operation, errno);
    // A folder that is there already may have been made a moment ago by somebody who has not synced it yet.
    VCKPT_TRY_VOID(sync(folder, name, "sync parent folder"));
    folder = std::move(next);
  }
  return {};
}

Result<std::vector<StorageEntry>> PosixRoot::list(const std::string& name) {
  constexpr std::string_view operation = "list";
  std::vector<StorageEntry> entries;
  if (const auto top = root(operation); !top) return top.error();
  const auto folder = open_folder(name, operation);
  if (!folder) {
    if (folder.error().code == Code::not_found) return entries;
    return folder.error();
  }
  std::vector<std::string> names;
  if (const int error = read_names(*folder, names); error != 0) return failure(name, operation, error);
  std::sort(names.begin(), names.end());
  for (auto& entry : names) {
    if (entry.starts_with(temporary_prefix)) continue;
    struct stat status {};
    if (::fstatat(folder->number(), entry.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) {
      if (errno == ENOENT) continue;  // removed meanwhile
      return failure(name.empty() ? entry : name + "/" + entry, operation, errno);
    }
    const bool file = S_ISREG(status.st_mode);
    const auto length_bytes = file ? static_cast<std::uint64_t>(status.st_size) : 0;
    entries.push_back(StorageEntry{std::move(entry), S_ISDIR(status.st_mode), length_bytes});
  }
  return entries;
}

Result<void> PosixRoot::sync_folder(const std::string& name) {
  VCKPT_TRY(const Descriptor folder, open_folder(name, "sync folder"));
  return sync(folder, name, "sync folder");
}

Result<void> PosixRoot::remove(const std::string& name) {
  constexpr std::string_view operation = "remove";
  const auto place = open_place(name, operation);
  if (!place) {
    if (place.error().code == Code::not_found) return {};
    return place.error();
  }
  const int error = remove_tree(place->folder, place->last, 0);
  if (error != 0) return failure(name, operation, error);
  return {};
}

}  // namespace vckpt
