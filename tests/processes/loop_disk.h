// A file system in a file, mounted through a loop device, whose power can be cut.
#pragma once

#include <optional>
#include <string>

namespace vckpt::testing {

// Why this machine can have no such disk (not root, no loop device, no mkfs.xfs...); nothing when it can.
std::optional<std::string> no_loop_disk(const std::string& kind);

// Ends the program with the exit code that ctest counts as skipped, saying why.
[[noreturn]] void skip_test(const std::string& why);

// A new file system in the file `image`. `kind`: ext4 or xfs.
void make_file_system(const std::string& kind, const std::string& image);

// A copy of an image that is mounted nowhere; holes stay holes.
void copy_image(const std::string& from, const std::string& to);

// An image while it is mounted, in a mount namespace of this thread and its children, which ends with them.
class LoopDisk {
 public:
  LoopDisk(std::string kind, std::string image, std::string mount_point);
  ~LoopDisk();
  LoopDisk(const LoopDisk&) = delete;
  LoopDisk& operator=(const LoopDisk&) = delete;

  // What was not synced is lost, and every call on it fails from now on.
  void cut_power();
  // As a machine does that has power again: what the disk has is all there is.
  void restart();

 private:
  void mount();
  void unmount();

  const std::string kind_;
  const std::string image_;
  const std::string mount_point_;
};

}  // namespace vckpt::testing
