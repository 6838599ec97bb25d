// Storage that refuses real processes: a full disk, a broken one, no links, a lost answer. Every rank is told in one
// line which file of which rank, and nothing is lost.
#include <cerrno>
#include <filesystem>

#include "tests/launch/jobs.h"
#include "tests/processes/struck_save.h"
#include "tests/support/catch.h"

namespace vckpt::testing {
namespace {

// All ranks fail with the same code, and name the object.
void check_refused(const Fault& fault, int code, const std::string& object) {
  const auto ran = struck_save(fault);
  INFO(describe(fault));
  REQUIRE(ran.has_value());
  INFO(ran->err);
  CHECK(ran->code == code);
  for (int rank = 0; rank < struck_ranks; ++rank) {
    const auto error = error_of(*ran, rank);
    CHECK(holds(error, object));
    CHECK(holds(error, "save of step 2"));
    CHECK((fault.who == "coordinator" || holds(error, "rank " + fault.who + " (")));
  }
}

}  // namespace

TEST_CASE("a full disk is exhausted on every rank, with the file that did not fit") {
  check_refused({"1", GENERATE("fallocate", "pwrite"), "rank-000001", 0, false, ENOSPC}, 6,
                "rank-000001-0.safetensors");
}

TEST_CASE("a disk that is full for the coordinator is exhausted on every rank, with the record that did not fit") {
  check_refused({"coordinator", "pwrite", GENERATE("/plans/", "/data/"), 0, false, ENOSPC}, 6, "No space left");
}

TEST_CASE("a broken disk is told with the file, and a failed fsync is never tried again") {
  check_refused({"1", "fsync", "rank-000001", 1, false, EIO}, 5, "rank-000001-0.safetensors");
}

TEST_CASE("a file that may not be made is invalid on every rank") {
  check_refused({"1", "openat", "rank-000001", 0, false, EACCES}, 2, "rank-000001-0.safetensors");
}

TEST_CASE("a job whose disk fails once goes on saving, if so many failures are allowed") {
  const bool allowed = GENERATE(false, true);
  const FaultyProcesses faulty({"1", "fsync", "s000002/model/0/rank-000001", 1, false, EIO});
  launch::Jobs jobs{{}, "llama:tiny", "none", "2"};
  jobs.environment = faulty.environment();
  const auto ran = jobs.run("save", 3, "fsdp=3", {"--saves", "3", "--failures-max", allowed ? "1" : "0"});
  INFO(ran.out << ran.err);
  CHECK(holds(faulty.struck(), "fsync"));
  CHECK(holds(error_of(ran, 0), "save of step 2"));
  CHECK(ran.code == (allowed ? 0 : 5));
  CHECK(jobs.steps() == (allowed ? std::vector<std::uint64_t>{1, 3} : std::vector<std::uint64_t>{1}));
}

TEST_CASE("a job whose last save failed ends with its error") {
  const FaultyProcesses faulty({"1", "fsync", "s000002/model/0/rank-000001", 1, false, EIO});
  launch::Jobs jobs{{}, "llama:tiny", "none", "2"};
  jobs.environment = faulty.environment();
  const auto ran = jobs.run("save", 3, "fsdp=3", {"--saves", "2", "--failures-max", "9"});
  INFO(ran.out << ran.err);
  CHECK(ran.code == 5);
  CHECK(jobs.steps() == std::vector<std::uint64_t>{1});
}

TEST_CASE("a publishing whose answer was lost is found to have worked") {
  const auto ran =
      struck_save({"coordinator", "linkat", GENERATE("/plans/", "/manifest", "/decisions/"), 1, true, EIO});
  REQUIRE(ran.has_value());
  INFO(ran->err);
  CHECK(ran->code == 0);
}

TEST_CASE("a record that cannot be published ends the save, and a decision is tried again") {
  check_refused({"coordinator", "linkat", GENERATE("/plans/", "/manifest"), 1, false, EIO}, 5, "Input/output error");
  const auto ran = struck_save({"coordinator", "linkat", "/decisions/", 1, false, EIO});
  REQUIRE(ran.has_value());
  INFO(ran->err);
  CHECK(ran->code == 0);
}

TEST_CASE("a file system without links is served by renaming") {
  const FaultyProcesses faulty({"*", "linkat", "/root", 0, false, EPERM});
  launch::Jobs jobs{{}, "llama:tiny", "none", "2"};
  jobs.environment = faulty.environment();
  jobs.save(2, "tp=2", {"--step", "1"});
  jobs.save(2, "dp=2", {"--step", "2"});
  CHECK(launch::number(jobs.load(1, "dp=1"), "step") == 2);
  CHECK(holds(faulty.struck(), "linkat"));
}

TEST_CASE("a root on a file system that cannot publish exclusively is refused") {
  const int ranks = GENERATE(1, 2);
  const FaultyProcesses faulty({"*", "linkat,renameat2", "/root", 0, false, EOPNOTSUPP});
  launch::Jobs jobs{{}, "llama:tiny", "none", "2"};
  jobs.environment = faulty.environment();
  const auto ran = jobs.run("save", ranks, ranks == 1 ? "dp=1" : "dp=2");
  INFO(ran.err);
  CHECK(ran.code == 2);
  CHECK(holds(ran.err, jobs.root()));
  CHECK(holds(ran.err, "RENAME_NOREPLACE"));
  CHECK(holds(faulty.struck(), "renameat2"));
  for (const auto& entry : std::filesystem::recursive_directory_iterator(jobs.root())) {
    CHECK_FALSE(entry.is_regular_file());
  }
}

}  // namespace vckpt::testing
