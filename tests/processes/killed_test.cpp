// Processes killed with SIGKILL at every phase of a save: the others are told who and when, the last good checkpoint
// loads, nothing undecided is loaded, and the next save works.
#include <cstdlib>

#include "tests/processes/struck_save.h"
#include "tests/support/catch.h"

namespace vckpt::testing {
namespace {

using launch::Ran;

// Every rank but the killed one ends with one line, which names who, the call and the step.
void check_told(const Ran& ran, const Fault& fault) {
  INFO(describe(fault) << "\n" << ran.out << ran.err);
  const bool coordinator = fault.who == "coordinator";
  const auto who = coordinator ? "coordinator" : "rank " + fault.who + " ";
  CHECK(ran.code != 0);
  for (int rank = 0; rank < struck_ranks; ++rank) {
    if (std::to_string(rank) == fault.who) continue;
    const auto line = error_of(ran, rank);
    INFO(line);
    CHECK(holds(line, who));
    CHECK((holds(line, "save of step 2") || holds(line, "waits for a session")));
  }
}

void check_killed(const Fault& fault) {
  const auto ran = struck_save(fault);
  INFO(describe(fault));
  REQUIRE(ran.has_value());
  check_told(*ran, fault);
}

}  // namespace

TEST_CASE("a rank killed before it has joined, or while it writes, is named by all others") {
  check_killed(GENERATE(Fault{"1", "", "/root"}, Fault{"1", "openat", "rank-000001"},
                        Fault{"1", "pwrite", "rank-000001"}, Fault{"1", "fsync", "rank-000001"},
                        Fault{"1", "fsync", "/data/", 2, true}));
}

TEST_CASE("a coordinator killed before it has published a plan or made an attempt is named by all ranks") {
  check_killed(GENERATE(Fault{"coordinator", "linkat", "/plans/"}, Fault{"coordinator", "linkat", "/plans/", 1, true},
                        Fault{"coordinator", "mkdirat", "/data/"}));
}

TEST_CASE("a coordinator killed while it publishes a manifest is named by all ranks") {
  check_killed(
      GENERATE(Fault{"coordinator", "linkat", "/manifest"}, Fault{"coordinator", "linkat", "/manifest", 1, true}));
}

TEST_CASE("a coordinator killed before its decision stands is named by all ranks") {
  check_killed(GENERATE(Fault{"coordinator", "fsync", "/decisions/"}, Fault{"coordinator", "linkat", "/decisions/"}));
}

TEST_CASE("a commit that the coordinator did not live to tell is found by the ranks") {
  const auto ran = struck_save({"coordinator", "linkat", "/decisions/", 1, true});
  REQUIRE(ran.has_value());
  INFO(ran->out << ran->err);
  CHECK(ran->code == 0);
  CHECK(holds(ran->out, "[0] saved e000002-a000001-s000002"));
  CHECK(holds(ran->out, "the coordinator was lost after the commit"));
  CHECK_FALSE(holds(ran->out, "  0 B"));
}

// Every storage call of one process in turn; the save may be over before the last ones.
TEST_CASE("a process killed before any of its storage calls leaves the old checkpoint or the new one") {
  const std::string who = GENERATE("1", "coordinator");
  if (std::getenv("VCKPT_LONG_TESTS") == nullptr) return;
  int at = 1;
  while (struck_save({who, "", "/root", at}) && at < 500) ++at;
  CHECK(at > 10);
  CHECK(at < 500);
}

}  // namespace vckpt::testing
