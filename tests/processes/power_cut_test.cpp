// Power cuts: a disk loses its power before a storage call of a save, and what was not synced is gone. After the
// restart there is the old checkpoint or the new one, every byte of it, and never less than what was acknowledged.
#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "runtime/descriptor.h"
#include "tests/launch/jobs.h"
#include "tests/processes/fault.h"
#include "tests/processes/loop_disk.h"
#include "tests/support/catch.h"

namespace vckpt::testing {
namespace {

using launch::Jobs;

constexpr int calls_max = 500;  // more than a save makes
constexpr auto deadline_s = "10";

bool every_call() { return std::getenv("VCKPT_LONG_TESTS") != nullptr; }

void require_disk(const std::string& kind) {
  if (const auto why = no_loop_disk(kind)) skip_test(*why);
}

// Jobs whose root is a disk of its own.
struct DiskJobs {
  DiskJobs(const std::string& kind, const std::string& image)
      : disk((std::filesystem::create_directory(jobs.root()), kind), image, jobs.root()) {}

  Jobs jobs{{}, "llama:tiny", "none", deadline_s};
  LoopDisk disk;
};

// An image with step 1 on it.
void make_saved(const std::string& kind, const std::string& image) {
  make_file_system(kind, image);
  const DiskJobs at(kind, image);
  at.jobs.save(2, "fsdp=2", {"--step", "1"});
}

bool acknowledged(const launch::Ran& ran) { return ran.out.find("saved e") != std::string::npos; }

void check_after_restart(const Jobs& jobs, bool second_acknowledged) {
  const auto steps = jobs.steps();
  REQUIRE(!steps.empty());
  CHECK(steps.front() == 1);
  CHECK(steps.size() <= 2);
  if (second_acknowledged) CHECK(steps.back() == 2);
  const auto newest = launch::number(jobs.load(1, "dp=1"), "step");
  CHECK(newest == static_cast<double>(steps.back()));
  CHECK((newest == 1 || newest == 2));
  CHECK(launch::vckpt_command({"verify", jobs.root() + "@1", "--deep"}).code == 0);
  CHECK(launch::vckpt_command({"verify", jobs.root(), "--deep"}).code == 0);
  jobs.save(2, "tp=2", {"--step", "3", "--verify"});
}

// Saves step 2 on a copy of a disk that loses its power at `fault`. Whether it did.
bool cut_save(const std::string& kind, const std::string& saved, Fault fault) {
  const TemporaryFolder folder;
  copy_image(saved, folder.file("image"));
  DiskJobs at(kind, folder.file("image"));
  fault.cut = at.jobs.root();
  const FaultyProcesses faulty(fault);
  at.jobs.environment = faulty.environment();
  at.jobs.deadline_s = "1";
  const auto ran = at.jobs.run("save", 2, "dp=2", {"--step", "2"});  // of a new plan
  at.jobs.deadline_s = deadline_s;
  at.jobs.environment.clear();
  INFO(kind << ": " << describe(fault) << "\n" << faulty.struck() << ran.out << ran.err);
  CHECK(ran.code != -1);
  if (faulty.struck().empty()) return false;
  at.disk.restart();
  check_after_restart(at.jobs, acknowledged(ran));
  return true;
}

// Before every call of one process, or every `stride`th.
void check_cuts(const std::string& kind, const std::string& who, int stride) {
  const TemporaryFolder folder;
  make_saved(kind, folder.file("saved"));
  int at = 1;
  int cuts = 0;
  for (; at < calls_max && cut_save(kind, folder.file("saved"), {who, "", "/root", at}); at += stride) ++cuts;
  CHECK(cuts > 2);
  CHECK(at < calls_max);
}

// A file that is synced, with its folder, and one that is not.
void write_two_files(const std::string& folder) {
  for (const std::string name : {"synced", "not-synced"}) {
    std::ofstream(folder + "/" + name) << "content";
    if (name != "synced") continue;
    for (const auto& path : {folder + "/" + name, folder}) {
      const Descriptor opened(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
      REQUIRE(::fsync(opened.number()) == 0);
    }
  }
}

void check_disk(const std::string& kind) {
  require_disk(kind);
  const TemporaryFolder folder;
  make_file_system(kind, folder.file("image"));
  std::filesystem::create_directory(folder.file("disk"));
  LoopDisk disk(kind, folder.file("image"), folder.file("disk"));
  write_two_files(folder.file("disk"));
  disk.cut_power();
  disk.restart();
  CHECK(launch::read_file(folder.file("disk/synced")) == "content");
  CHECK(launch::read_file(folder.file("disk/not-synced")).empty());
}

// A disk that lies about syncing: what its job acknowledged does not outlive a cut.
void check_lying_disk(const std::string& kind) {
  require_disk(kind);
  const TemporaryFolder folder;
  make_saved(kind, folder.file("saved"));
  DiskJobs at(kind, folder.file("saved"));
  const FaultyProcesses faulty({"*", "fsync", "/root", 0, false, left_out});
  at.jobs.environment = faulty.environment();
  const auto ran = at.jobs.run("save", 2, "dp=2", {"--step", "2"});
  at.jobs.environment.clear();
  REQUIRE(acknowledged(ran));
  at.disk.cut_power();
  at.disk.restart();
  CHECK(at.jobs.steps() == std::vector<std::uint64_t>{1});
}

}  // namespace

TEST_CASE("a power cut on ext4 takes what was not synced, and leaves what was") { check_disk("ext4"); }
TEST_CASE("a power cut on XFS takes what was not synced, and leaves what was") { check_disk("xfs"); }

TEST_CASE("an acknowledged save on ext4 is lost in a power cut if nothing was synced") { check_lying_disk("ext4"); }
TEST_CASE("an acknowledged save on XFS is lost in a power cut if nothing was synced") { check_lying_disk("xfs"); }

TEST_CASE("a power cut on ext4 before any storage call of a rank leaves the old checkpoint or the new one") {
  require_disk("ext4");
  check_cuts("ext4", "1", every_call() ? 1 : 7);
}

TEST_CASE("a power cut on XFS before any storage call of a rank leaves the old checkpoint or the new one") {
  require_disk("xfs");
  check_cuts("xfs", "1", every_call() ? 1 : 7);
}

TEST_CASE("a power cut on ext4 before any storage call of a coordinator leaves the old checkpoint or the new one") {
  require_disk("ext4");
  check_cuts("ext4", "coordinator", every_call() ? 1 : 19);
}

TEST_CASE("a power cut on XFS before any storage call of a coordinator leaves the old checkpoint or the new one") {
  require_disk("xfs");
  check_cuts("xfs", "coordinator", every_call() ? 1 : 19);
}

}  // namespace vckpt::testing
