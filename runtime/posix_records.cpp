#include "runtime/posix_records.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>

namespace vckpt {
namespace {

constexpr std::size_t compare_bytes = 1 << 20;

// Removes a temporary name when the work on it is over, however it went.
class Temporary {
 public:
  explicit Temporary(const Descriptor& folder) : folder_(folder), name_(temporary_name()) {}
  ~Temporary() { remove(); }
  Temporary(const Temporary&) = delete;
  Temporary& operator=(const Temporary&) = delete;
  const std::string& name() const { return name_; }
  void remove() const { static_cast<void>(::unlinkat(folder_.number(), name_.c_str(), 0)); }

 private:
  const Descriptor& folder_;
  std::string name_;
};

// Writes and syncs the bytes under a temporary name.
Result<void> write_temporary(PosixRoot& root, const PosixRoot::Place& place, const Temporary& temporary,
                             const std::string& name, std::span<const std::byte> bytes) {
  Descriptor file(uninterrupted([&] {
    return ::openat(place.folder.number(), temporary.name().c_str(),
                    O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
  }));
  if (!file) return root.failure(name, "create record", errno);
  if (const int error = write_fully(file, 0, bytes); error != 0) return root.failure(name, "write record", error);
  VCKPT_TRY_VOID(root.sync(file, name, "sync record"));
  if (const int error = file.close(); error != 0) return root.failure(name, "close record", error);
  return {};
}

// Gives the temporary file its name unless the name is taken (EEXIST): 0, or the errno.
int give_name(Publishing publishing, const Descriptor& folder, const std::string& temporary, const std::string& name) {
  if (publishing == Publishing::link) {
    if (::linkat(folder.number(), temporary.c_str(), folder.number(), name.c_str(), 0) == 0) return 0;
    const bool no_links = errno == EPERM || errno == EOPNOTSUPP || errno == ENOSYS || errno == EMLINK;
    if (!no_links) return errno;
  }
  const int result = ::renameat2(folder.number(), temporary.c_str(), folder.number(), name.c_str(), RENAME_NOREPLACE);
  return result == 0 ? 0 : errno;
}

// `equal` or `other`; not_found when nothing stands there.
Result<Published> compare(PosixRoot& root, const PosixRoot::Place& place, const std::string& name,
                          std::span<const std::byte> bytes) {
  VCKPT_TRY(const auto open, root.open_file(place, name, "compare record"));
  if (open.length_bytes != bytes.size()) return Published::other;
  Bytes buffer(std::min(bytes.size(), compare_bytes));
  for (std::size_t begin = 0; begin < bytes.size(); begin += buffer.size()) {
    const auto wanted = bytes.subspan(begin, std::min(buffer.size(), bytes.size() - begin));
    const ReadCount count = read_fully(open.file, begin, std::span(buffer).first(wanted.size()));
    if (count.error != 0) return root.failure(name, "compare record", count.error);
    if (count.bytes != wanted.size() || !std::equal(wanted.begin(), wanted.end(), buffer.begin())) {
      return Published::other;
    }
  }
  return Published::equal;
}

}  // namespace

Result<Published> publish_once(PosixRoot& root, Publishing publishing, const std::string& name,
                               std::span<const std::byte> bytes) {
  VCKPT_TRY(const auto place, root.open_place(name, "publish"));
  auto published = compare(root, place, name, bytes);
  if (!published && published.error().code == Code::not_found) {
    const Temporary temporary(place.folder);
    VCKPT_TRY_VOID(write_temporary(root, place, temporary, name, bytes));
    const int error = give_name(publishing, place.folder, temporary.name(), place.last);
    if (error == 0) {
      published = Published::made;
    } else {
      // The name is taken, or the answer was lost on its way: what stands there tells.
      published = compare(root, place, name, bytes);
      if (!published) return root.failure(name, "publish", error);
    }
  }
  if (!published) return published.error();
  // Whoever made it, it is durable before anybody hears of it.
  VCKPT_TRY_VOID(root.sync(place.folder, name, "sync folder"));
  return published;
}

Result<void> probe(PosixRoot& root, Publishing publishing) {
  PosixRoot::Place place;
  VCKPT_TRY(place.folder, root.open_folder("", "probe"));
  const Temporary first(place.folder);
  const Temporary second(place.folder);
  const Temporary name(place.folder);
  const Bytes bytes(16, std::byte{0x5A});
  VCKPT_TRY_VOID(write_temporary(root, place, first, "", bytes));
  VCKPT_TRY_VOID(write_temporary(root, place, second, "", bytes));
  const int named = give_name(publishing, place.folder, first.name(), name.name());
  if (named != 0) {
    const Error reason = root.failure("", "probe", named);
    if (reason.code != Code::invalid) return reason;
    return invalid(reason.message + ": the file system has neither links nor rename without replacing (" +
                   "RENAME_NOREPLACE), so records cannot be published exclusively");
  }
  if (give_name(publishing, place.folder, second.name(), name.name()) != EEXIST) {
    return invalid(root.path() + ": probe: a taken name was given away a second time, so records cannot be published " +
                   "exclusively");
  }
  return root.sync(place.folder, "", "probe: sync folder");
}

}  // namespace vckpt
