#include "tests/processes/loop_disk.h"

#include <fcntl.h>
#include <linux/types.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <utility>
#include <vector>

#include "runtime/descriptor.h"
#include "tests/launch/program.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_folder.h"

namespace vckpt::testing {
namespace {

constexpr int skipped_exit_code = 77;
constexpr std::uintmax_t image_bytes = std::uintmax_t{320} << 20;  // XFS wants 300 MiB; most of it is never written

// Mounts of this thread are nobody else's from now on.
bool enter_own_mounts() {
  static const bool own =
      ::unshare(CLONE_NEWNS) == 0 && ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0;
  return own;
}

launch::Ran tool(const std::vector<std::string>& command) {
  const auto* path = std::getenv("PATH");
  return launch::run_program(command, {{"PATH", std::string(path ? path : "") + ":/usr/sbin:/sbin"}});
}

void must(const std::vector<std::string>& command) {
  const auto ran = tool(command);
  INFO(command[0] << " " << command.back() << ": " << ran.out << ran.err);
  REQUIRE(ran.code == 0);
}

std::string make_command(const std::string& kind) { return "mkfs." + kind; }

}  // namespace

std::optional<std::string> no_loop_disk(const std::string& kind) {
  if (::geteuid() != 0) return "not root";
  for (const auto& program : {make_command(kind), std::string("mount"), std::string("umount")}) {
    if (tool({"sh", "-c", "command -v " + program}).code != 0) return "there is no " + program;
  }
  if (!enter_own_mounts()) return "no mount namespace of its own";
  const TemporaryFolder folder;
  make_file_system(kind, folder.file("image"));
  std::filesystem::create_directory(folder.file("disk"));
  const auto mounted = tool({"mount", "-o", "loop", "-t", kind, folder.file("image"), folder.file("disk")});
  if (mounted.code != 0) return "mount -o loop -t " + kind + ": " + mounted.err;
  ::umount(folder.file("disk").c_str());
  return std::nullopt;
}

void skip_test(const std::string& why) {
  std::fprintf(stderr, "skipped: %s\n", why.c_str());
  std::exit(skipped_exit_code);
}

void make_file_system(const std::string& kind, const std::string& image) {
  launch::write_file(image, "");
  std::filesystem::resize_file(image, image_bytes);
  must({make_command(kind), "-q", image});
}

void copy_image(const std::string& from, const std::string& to) { must({"cp", "--sparse=always", from, to}); }

LoopDisk::LoopDisk(std::string kind, std::string image, std::string mount_point)
    : kind_(std::move(kind)), image_(std::move(image)), mount_point_(std::move(mount_point)) {
  REQUIRE(enter_own_mounts());
  mount();
}

LoopDisk::~LoopDisk() { ::umount2(mount_point_.c_str(), MNT_DETACH); }

void LoopDisk::mount() {
  // Nothing is written back by the passing of time.
  const std::string options = kind_ == "ext4" ? "loop,commit=300" : "loop";
  must({"mount", "-o", options, "-t", kind_, image_, mount_point_});
}

void LoopDisk::unmount() { must({"umount", mount_point_}); }

void LoopDisk::cut_power() {
  const Descriptor folder(::open(mount_point_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  __u32 without_flushing = 2;  // XFS_IOC_GOINGDOWN, which ext4 knows too
  REQUIRE(::ioctl(folder.number(), _IOR('X', 125, __u32), &without_flushing) == 0);
}

void LoopDisk::restart() {
  unmount();
  mount();
}

}  // namespace vckpt::testing
