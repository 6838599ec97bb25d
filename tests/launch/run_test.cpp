// `vckpt run` with small shell programs as ranks.
#include <chrono>
#include <filesystem>
#include <thread>

#include "tests/launch/program.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_folder.h"

using namespace vckpt;
using namespace vckpt::launch;

namespace {

Ran run_ranks(const TemporaryFolder& folder, int ranks, const std::string& script,
              const std::vector<std::string>& options = {}) {
  std::vector<std::string> arguments = {"run", "-n", std::to_string(ranks), "--root", folder.file("root")};
  arguments.insert(arguments.end(), options.begin(), options.end());
  arguments.insert(arguments.end(), {"--", "/bin/sh", "-c", script});
  return vckpt_command(arguments);
}

bool holds(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

// Whether any process has this text in its command line.
bool alive(const std::string& marker) {
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    if (holds(read_file((entry.path() / "cmdline").string()), marker)) return true;
  }
  return false;
}

}  // namespace

TEST_CASE("every rank gets its place in the job, and each line of output its rank") {
  const TemporaryFolder folder;
  const auto ran = run_ranks(folder, 3,
                             "echo $RANK/$WORLD_SIZE $LOCAL_RANK/$LOCAL_WORLD_SIZE $TORCHELASTIC_RESTART_COUNT; "
                             "echo $VCKPT_ROOT; echo ${VCKPT_COORDINATOR%%:*} 1>&2; test -n \"$TORCHELASTIC_RUN_ID\"");
  INFO(ran.out << ran.err);
  CHECK(ran.code == 0);
  CHECK(holds(ran.out, "[0] 0/3 0/3 0\n"));
  CHECK(holds(ran.out, "[2] 2/3 2/3 0\n"));
  CHECK(holds(ran.out, "[1] " + folder.file("root") + "\n"));
  CHECK(holds(ran.err, "[1] tcp\n"));
}

TEST_CASE("one rank alone gets no coordinator") {
  const TemporaryFolder folder;
  const auto ran = run_ranks(folder, 1, "echo \"<$VCKPT_COORDINATOR>\"");
  CHECK(ran.code == 0);
  CHECK(ran.out == "[0] <>\n");
  CHECK(ran.err.empty());
}

TEST_CASE("what stands behind the dashes reaches the program as it is") {
  const TemporaryFolder folder;
  const auto ran = vckpt_command({"run", "-n", "1", "--root", folder.file("root"), "--", "/bin/sh", "-c",
                                  "printf '%s\\n' \"$@\"", "sh", "--root", "[1,2]", "a b", "ls", "--", "-n"});
  CHECK(ran.code == 0);
  CHECK(ran.out == "[0] --root\n[0] [1,2]\n[0] a b\n[0] ls\n[0] --\n[0] -n\n");
}

TEST_CASE("a last line without an end and a very long one are passed on") {
  const TemporaryFolder folder;
  const auto ran = run_ranks(folder, 1, "head -c 200000 /dev/zero | tr '\\0' x; echo; printf end");
  CHECK(ran.code == 0);
  CHECK(ran.out.size() > 200'000);
  CHECK(holds(ran.out, "[0] end\n"));
}

TEST_CASE("the exit code of a rank is passed on, and 128 + signal of a killed one") {
  const TemporaryFolder folder;
  CHECK(run_ranks(folder, 1, "exit 7").code == 7);
  CHECK(run_ranks(folder, 1, "kill -9 $$").code == 137);
  const auto ran = run_ranks(folder, 2, "test $RANK = 0 || exit 5; exec sleep 1000", {"--grace", "0.3"});
  INFO(ran.err);
  CHECK(ran.code == 5);
  CHECK(holds(ran.err, "rank 1 ended with exit code 5"));
}

TEST_CASE("after a first failure the others may end by themselves within the grace") {
  const TemporaryFolder folder;
  const auto ran = run_ranks(folder, 2, "test $RANK = 0 || exit 5; sleep 0.3; echo done", {"--grace", "60"});
  CHECK(ran.code == 5);
  CHECK(holds(ran.out, "[0] done\n"));
}

TEST_CASE("what ignores SIGTERM after the grace is killed, with all that it started") {
  const TemporaryFolder folder;
  const auto marker = folder.file("marker");
  const auto ran = run_ranks(
      folder, 2, "trap '' TERM; test $RANK = 1 && exit 3; /bin/sh -c 'sleep 1000; :' " + marker + " & sleep 1000",
      {"--grace", "0.2"});
  CHECK(ran.code == 3);
  CHECK(!alive(marker));
}

TEST_CASE("SIGTERM ends all processes") {
  const TemporaryFolder folder;
  const auto marker = folder.file("marker");
  // The rank ends its own parent, `vckpt run`, and stays.
  const auto ran =
      run_ranks(folder, 2, "test $RANK = 1 && kill -TERM $PPID; exec /bin/sh -c 'sleep 1000; :' " + marker);
  INFO(ran.err);
  CHECK(ran.code == 143);
  CHECK(!alive(marker));
}

TEST_CASE("what a killed run has started ends with it") {
  const TemporaryFolder folder;
  const auto marker = folder.file("marker");
  const auto ran =
      run_ranks(folder, 2, "test $RANK = 1 && kill -KILL $PPID; exec /bin/sh -c 'sleep 1000; :' " + marker);
  CHECK(ran.code == 137);
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  // The folder is in the command lines of the ranks and of the coordinator.
  while (alive(folder.file("")) && std::chrono::steady_clock::now() < until) std::this_thread::yield();
  CHECK(!alive(folder.file("")));
}

TEST_CASE("a coordinator that is killed is started again where the ranks call, if asked for") {
  const TemporaryFolder folder;
  const auto kill_it =
      "test $RANK = 0 && for p in /proc/[0-9]*; do "
      "if test \"$(cat $p/comm 2>&1)\" = vckpt-coordinat && tr '\\0' ' ' < $p/cmdline | grep -q '" +
      folder.file("root") + "'; then kill -9 ${p#/proc/}; fi; done; ";
  const auto save = kill_it + "exec " + vckpt_program() + " drill save --model llama:tiny --layout dp=2 --deadline 30";
  const auto restarted = run_ranks(folder, 2, save, {"--deadline", "30", "--restart-coordinator"});
  INFO(restarted.out << restarted.err);
  CHECK(restarted.code == 0);
  CHECK(holds(restarted.err, "the coordinator ended with signal 9"));
  CHECK(holds(restarted.out, "[0] saved e000002-a000001-s000001"));
}
