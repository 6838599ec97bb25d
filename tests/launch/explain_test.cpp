// `vckpt explain` and `vckpt wait`: what became of attempts, of real jobs and of records by hand.
#include "launch/explain.h"

#include <filesystem>
#include <future>

#include "schema/codec.h"
#include "schema/names.h"
#include "tests/launch/jobs.h"
#include "tests/support/catch.h"

using namespace vckpt;
using namespace vckpt::launch;

namespace {

bool holds(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

struct SmallJobs : Jobs {
  SmallJobs() {
    model = "llama:tiny";
    optimizer = "none";
  }
};

// A root with nothing but records, as they come to lie there.
struct Records {
  TemporaryFolder folder;
  std::string root = folder.file("root");

  Records() {
    for (const auto name : {names::decisions, names::data, names::epochs}) {
      std::filesystem::create_directories(root + "/" + std::string(name));
    }
    put(std::string(names::run), encode(RunRecord{"by-hand", Nonce{1}}));
  }
  void put(const std::string& name, const Bytes& bytes) const {
    write_file(root + "/" + name, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  }
  void decide(std::uint64_t attempt, std::uint64_t step, Verdict verdict, const std::string& reason = "",
              std::uint64_t parent = 0) const {
    Decision decision;
    decision.id = {Epoch{1}, Attempt{attempt}, Step{step}};
    decision.verdict = verdict;
    decision.decided_by = Epoch{1};
    decision.reason = reason;
    decision.world_size = 2;
    if (parent > 0) decision.parent = CheckpointId{Epoch{1}, Attempt{parent}, Step{parent}};
    put(names::decision(decision.id), encode(decision));
  }
  Ran explain(const std::string& tail, const std::vector<std::string>& more = {}) const {
    auto arguments = std::vector<std::string>{"explain", root + tail};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return vckpt_command(arguments);
  }
};

}  // namespace

TEST_CASE("the reason of an abort says rank, host, phase and object") {
  CHECK(blame("exhausted: rank 2 (node-1) failed in phase write: section 'model': file "
              "'data/e000001-a000002-s000007/model/0/rank-000002-0.safetensors': /r/data/x: write: No space left") ==
        Blame{"exhausted", 2, "node-1", "write", "data/e000001-a000002-s000007/model/0/rank-000002-0.safetensors"});
  CHECK(blame("unavailable: save 3 (e000001-a000003-s000009): rank 0 (a) is lost, last heard of in phase copy") ==
        Blame{"unavailable", 0, "a", "copy", ""});
  CHECK(blame("unavailable: save 3: rank 12 (b) has not moved for 3 s in phase sync at 5 bytes") ==
        Blame{"unavailable", 12, "b", "sync", ""});
  CHECK(blame("invalid: rank 1 (h) failed in phase copy: w: the memory is not there") ==
        Blame{"invalid", 1, "h", "copy", "w"});
  CHECK(blame("exhausted: save 2: its folders: /r/data/e1: create folder: No space left on device") ==
        Blame{"exhausted", std::nullopt, "", "", "/r/data/e1"});
  CHECK(blame("aborted: a new session of 3 ranks has joined") == Blame{"aborted", std::nullopt, "", "", ""});
  CHECK(blame("unavailable: rank 4294967296 is too much, crank 3 is none") ==
        Blame{"unavailable", std::nullopt, "", "", ""});
  CHECK(blame("") == Blame{});
}

TEST_CASE("explain says of every attempt of a step what became of it") {
  const Records records;
  records.decide(1, 1, Verdict::commit);
  records.decide(2, 2, Verdict::commit, "", 1);
  records.decide(3, 3, Verdict::abort, "exhausted: rank 1 (node-7) failed in phase write: file 'f': disk full");
  records.decide(4, 3, Verdict::commit, "", 1);
  std::filesystem::create_directories(records.root + "/data/e000001-a000005-s000003");
  write_file(records.root + "/decisions/e000001-a000006-s000003", "no decision");

  const auto third = records.explain("@3");
  INFO(third.out << third.err);
  CHECK(third.code == 0);
  CHECK(holds(third.out, "e000001-a000003-s000003: aborted by epoch 1"));
  CHECK(holds(third.out, "  rank    1 on node-7\n  phase   write\n  object  f\n  reason  exhausted: rank 1"));
  CHECK(holds(third.out, "e000001-a000004-s000003: committed by epoch 1"));
  CHECK(holds(third.out, "  parent  e000001-a000001-s000001\n  line    the newest"));
  CHECK(holds(third.out, "e000001-a000005-s000003: begun by epoch 1 and not decided"));
  CHECK(holds(third.out, "e000001-a000006-s000003: its decision cannot be read: "));

  CHECK(holds(records.explain("@2").out, "abandoned: training went back behind it"));
  const auto first = records.explain("@e000001-a000001-s000001");
  CHECK(holds(first.out, "  parent  none: it begins a line\n  line    on the current line\n"));
  CHECK(holds(records.explain("").out, "e000001-a000006-s000003: its decision cannot be read"));

  const auto json = records.explain("@3", {"--json"});
  CHECK(one_line(json.out));
  CHECK(holds(json.out, "\"state\":\"aborted\",\"decided_by\":1"));
  CHECK(holds(json.out, "\"code\":\"exhausted\",\"rank\":1,\"host\":\"node-7\",\"phase\":\"write\",\"object\":\"f\""));
  CHECK(holds(json.out, "\"state\":\"committed\""));
  CHECK(holds(json.out, "\"parent\":\"e000001-a000001-s000001\",\"newest\":true,\"abandoned\":false"));
  CHECK(holds(json.out, "\"state\":\"undecided\""));
  CHECK(holds(json.out, "\"state\":\"unreadable\""));
}

TEST_CASE("explain names the rank that a job lost") {
  const SmallJobs jobs;
  const auto saved = jobs.run("save", 2, "dp=2", {"--step", "4", "--die", "1@staged"});
  CHECK(saved.code != 0);
  const auto explained = vckpt_command({"explain", jobs.root() + "@4"});
  INFO(saved.err << explained.out << explained.err);
  REQUIRE(explained.code == 0);
  CHECK(holds(explained.out, "e000001-a000001-s000004: aborted by epoch 1"));
  CHECK(holds(explained.out, "  rank    1 on "));
  CHECK(holds(explained.out, "  phase   "));
}

TEST_CASE("explain and wait refuse what is not there in one line") {
  const Records records;
  records.decide(1, 1, Verdict::abort, "aborted: so it was");
  const auto refused = [&](const std::vector<std::string>& arguments, int code, const std::string& noun) {
    const auto ran = vckpt_command(arguments);
    INFO(arguments[0] << " " << arguments[1] << "\n" << ran.out << ran.err);
    CHECK(ran.code == code);
    CHECK(one_line(ran.err));
    CHECK(holds(ran.err, noun));
    CHECK(ran.out.empty());
  };
  refused({"explain", records.root + "@7"}, 3, "no attempt at step 7");
  refused({"explain", records.root + "@e000009-a000001-s000001"}, 3, "no attempt e000009-a000001-s000001");
  refused({"explain", records.root + "@soon"}, 2, "'soon'");
  refused({"explain", records.folder.file("none")}, 3, records.folder.file("none"));
  refused({"explain", records.folder.path().string()}, 3, "RUN");
  refused({"wait", records.folder.file("none")}, 3, records.folder.file("none"));
  refused({"wait", records.root, "--after", "soon"}, 2, "soon");
  refused({"wait", records.root, "--timeout", "0"}, 2, "--timeout");
  refused({"wait", records.root, "--timeout", "0.1"}, 5, "nothing newer was committed within 0.100 s");
  refused({"wait", records.root, "--after", "3", "--timeout", "0.1"}, 5, "nothing newer than step 3");
}

TEST_CASE("wait ends when the newest has a larger step") {
  const Records records;
  records.decide(1, 600, Verdict::commit);
  const auto at_once = vckpt_command({"wait", records.root, "--after", "599", "--timeout", "60"});
  CHECK(at_once.code == 0);
  CHECK(at_once.out == "e000001-a000001-s000600: step 600, 2 ranks\n");
  auto waiting = std::async(std::launch::async, [&] {
    return vckpt_command({"wait", records.root, "--after", "600", "--timeout", "60", "--json"});
  });
  records.decide(2, 601, Verdict::abort, "aborted: this one does not count");
  records.decide(3, 7, Verdict::commit, "", 600);
  records.decide(4, 602, Verdict::commit);
  const auto ran = waiting.get();
  INFO(ran.err);
  CHECK(ran.code == 0);
  CHECK(one_line(ran.out));
  CHECK(holds(ran.out, "\"id\":\"e000001-a000004-s000602\",\"step\":602"));
}

TEST_CASE("wait ends at the next commit of a job, whatever its step") {
  const SmallJobs jobs;
  jobs.save(1, "dp=1", {"--step", "50"});
  auto waiting = std::async(std::launch::async, [&] {
    return vckpt_command({"wait", jobs.root(), "--timeout", "60"});
  });
  // It may look for the first time after a save: then the next one ends it.
  for (int step = 1; step <= 20 && waiting.wait_for(std::chrono::seconds(0)) != std::future_status::ready; ++step) {
    jobs.save(1, "dp=1", {"--step", std::to_string(step)});
  }
  const auto ran = waiting.get();
  INFO(ran.err);
  CHECK(ran.code == 0);
  CHECK(holds(ran.out, ": step "));
  CHECK_FALSE(holds(ran.out, "step 50"));
}
