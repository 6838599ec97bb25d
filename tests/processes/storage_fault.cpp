// Preloaded into real processes (LD_PRELOAD): a chosen storage call of a chosen process fails, kills it, is only said
// to have been made, or loses the disk its power. See tests/processes/fault.h for what the environment says. It uses no
// C++ runtime and no memory of its own, for it also runs inside programs that another library has not started yet.
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/types.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>

namespace {

constexpr int path_bytes_max = 4096;

struct Path {
  char text[path_bytes_max];
};

Path of_descriptor(int descriptor) {
  Path link;
  Path path;
  snprintf(link.text, sizeof link.text, "/proc/self/fd/%d", descriptor);
  const auto count = readlink(link.text, path.text, sizeof path.text - 1);
  path.text[count > 0 ? count : 0] = 0;
  return path;
}

Path of_name(int folder, const char* name) {
  Path path;
  if (name[0] == '/' || folder == AT_FDCWD) {
    snprintf(path.text, sizeof path.text, "%s", name);
  } else {
    const auto above = of_descriptor(folder);
    snprintf(path.text, sizeof path.text, "%.*s/%s", path_bytes_max / 2, above.text, name);
  }
  return path;
}

const char* setting(const char* name) {
  const auto* text = getenv(name);
  return text != nullptr ? text : "";
}

// Whether this process is the one: `coordinator`, the number of a rank, or `*`.
bool chosen_process() {
  const auto* who = setting("FAULT_WHO");
  if (who[0] == 0) return false;
  if (strcmp(who, "*") == 0) return true;
  const bool coordinator = strcmp(program_invocation_short_name, "vckpt-coordinator") == 0;
  if (coordinator || strcmp(who, "coordinator") == 0) return coordinator && strcmp(who, "coordinator") == 0;
  return strcmp(program_invocation_short_name, "vckpt") == 0 && strcmp(setting("RANK"), who) == 0;
}

std::atomic<long> calls{0};

enum class Place { before, after };

// Nothing that is not on the disk by now will be: flag 2 of XFS_IOC_GOINGDOWN, which ext4 knows too.
void cut_power(const char* mount_point) {
  __u32 without_flushing = 2;
  const int folder = open(mount_point, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0 || ioctl(folder, _IOR('X', 125, __u32), &without_flushing) != 0) abort();
  close(folder);
}

// Counts a call that matches, and when it is the one: says so, and strikes. The errno to fail with, -1 when the call is
// to be left out, 0 when it is to be made.
int strike(const char* call, const Path& path, Place place) {
  static const bool chosen = chosen_process();
  if (!chosen) return 0;
  char listed[64];
  snprintf(listed, sizeof listed, ",%s,", call);
  const auto* wanted = setting("FAULT_CALLS");
  if (wanted[0] != 0 && strstr(wanted, listed) == nullptr) return 0;
  if (strstr(path.text, setting("FAULT_PATH")) == nullptr) return 0;
  if ((strcmp(setting("FAULT_PLACE"), "after") == 0) != (place == Place::after)) return 0;
  const auto at = atol(setting("FAULT_AT"));
  if (++calls != at && at != 0) return 0;
  const auto mark = open(setting("FAULT_MARK"), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  dprintf(mark, "%s %s\n", call, path.text);
  close(mark);
  if (setting("FAULT_CUT")[0] != 0) {
    cut_power(setting("FAULT_CUT"));
    return 0;
  }
  const int error = atoi(setting("FAULT_ERRNO"));
  if (error == 0) kill(getpid(), SIGKILL);
  return error;
}

template <typename Function>
Function* real(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

// The call between its two moments.
template <typename Result, typename Call>
Result struck(const char* name, const Path& path, Call call) {
  if (const int error = strike(name, path, Place::before)) {
    if (error < 0) return 0;
    errno = error;
    return -1;
  }
  const auto result = call();
  const int own = errno;
  if (const int error = strike(name, path, Place::after)) {
    errno = error;
    return -1;
  }
  errno = own;
  return result;
}

}  // namespace

extern "C" {

int openat(int folder, const char* name, int flags, ...) {
  mode_t mode = 0;
  if ((flags & (O_CREAT | O_TMPFILE)) != 0) {
    va_list rest;
    va_start(rest, flags);
    mode = va_arg(rest, mode_t);
    va_end(rest);
  }
  static auto* const next = real<int(int, const char*, int, ...)>("openat");
  return struck<int>("openat", of_name(folder, name), [&] { return next(folder, name, flags, mode); });
}

int mkdirat(int folder, const char* name, mode_t mode) {
  static auto* const next = real<int(int, const char*, mode_t)>("mkdirat");
  return struck<int>("mkdirat", of_name(folder, name), [&] { return next(folder, name, mode); });
}

int linkat(int from, const char* old_name, int to, const char* name, int flags) {
  static auto* const next = real<int(int, const char*, int, const char*, int)>("linkat");
  return struck<int>("linkat", of_name(to, name), [&] { return next(from, old_name, to, name, flags); });
}

int renameat2(int from, const char* old_name, int to, const char* name, unsigned flags) {
  static auto* const next = real<int(int, const char*, int, const char*, unsigned)>("renameat2");
  return struck<int>("renameat2", of_name(to, name), [&] { return next(from, old_name, to, name, flags); });
}

int unlinkat(int folder, const char* name, int flags) {
  static auto* const next = real<int(int, const char*, int)>("unlinkat");
  return struck<int>("unlinkat", of_name(folder, name), [&] { return next(folder, name, flags); });
}

int fallocate(int descriptor, int mode, off_t at, off_t count) {
  static auto* const next = real<int(int, int, off_t, off_t)>("fallocate");
  return struck<int>("fallocate", of_descriptor(descriptor), [&] { return next(descriptor, mode, at, count); });
}

int fsync(int descriptor) {
  static auto* const next = real<int(int)>("fsync");
  return struck<int>("fsync", of_descriptor(descriptor), [&] { return next(descriptor); });
}

ssize_t pwrite(int descriptor, const void* bytes, size_t count, off_t at) {
  static auto* const next = real<ssize_t(int, const void*, size_t, off_t)>("pwrite");
  return struck<ssize_t>("pwrite", of_descriptor(descriptor), [&] { return next(descriptor, bytes, count, at); });
}

ssize_t pread(int descriptor, void* bytes, size_t count, off_t at) {
  static auto* const next = real<ssize_t(int, void*, size_t, off_t)>("pread");
  return struck<ssize_t>("pread", of_descriptor(descriptor), [&] { return next(descriptor, bytes, count, at); });
}

}  // extern "C"
