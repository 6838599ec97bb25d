// Saves and loads by real processes, as a user starts them.
#include "tests/launch/jobs.h"
#include "tests/launch/program.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_folder.h"

using namespace vckpt;
using namespace vckpt::launch;

TEST_CASE("steps follow one another, each can be loaded, and the newest is the last one saved") {
  const Jobs jobs{{}, "llama:tiny", "none"};
  jobs.save(2, "dp=2", {"--step", "20"});
  jobs.save(1, "dp=1", {"--step", "10", "--verify"});
  CHECK(number(jobs.load(1, "dp=1"), "step") == 10);
  CHECK(number(jobs.load(1, "dp=1", {"--step", "20"}), "step") == 20);
  const auto missing = jobs.run("load", 1, "dp=1", {"--step", "30"});
  CHECK(missing.code == 3);
  CHECK(missing.err.find("30") != std::string::npos);
}

TEST_CASE("a rank that is killed in a save is named by the others, and the last checkpoint still loads") {
  const auto moment = GENERATE(as<std::string>{}, "call", "staged");
  const Jobs jobs{{}, "llama:tiny", "none", "2"};
  jobs.save(3, "fsdp=3", {"--step", "1"});
  const auto ran = jobs.run("save", 3, "fsdp=3", {"--step", "2", "--die", "1@" + moment});
  INFO(moment << "\n" << ran.out << ran.err);
  CHECK(ran.code == 137);
  CHECK(ran.err.find("rank 1") != std::string::npos);
  CHECK(ran.err.find("[0] vckpt drill: ") != std::string::npos);
  CHECK(ran.err.find("[2] vckpt drill: ") != std::string::npos);
  CHECK(number(jobs.load(2, "tp=2"), "step") == 1);
  jobs.save(3, "fsdp=3", {"--step", "3"});
  CHECK(number(jobs.load(2, "pp=2"), "step") == 3);
}

TEST_CASE("a drill of several saves tells each of them on every rank") {
  const Jobs jobs{{}, "llama:tiny", "none"};
  const auto ran = jobs.run("save", 2, "tp=2", {"--step", "5", "--saves", "3", "--verify"});
  INFO(ran.out << ran.err);
  REQUIRE(ran.code == 0);
  for (const std::string rank : {"[0] ", "[1] "}) {
    for (const auto step : {5, 6, 7}) {
      const auto id = "e000001-a00000" + std::to_string(step - 4) + "-s00000" + std::to_string(step);
      CHECK(ran.out.find(rank + "saved " + id + "\n") != std::string::npos);
    }
  }
  CHECK(jobs.steps() == std::vector<std::uint64_t>{5, 6, 7});
}

TEST_CASE("a load of what is not the saved model is refused or found wrong") {
  const Jobs jobs{{}, "llama:tiny", "none"};
  jobs.save(1, "dp=1");
  const Jobs other{{}, "llama:tiny-moe", "none"};
  const auto ran =
      vckpt_command({"drill", "load", "--root", jobs.root(), "--model", "llama:tiny-moe", "--layout", "dp=1"});
  INFO(ran.err);
  CHECK(ran.code == 2);
  CHECK(one_line(ran.err));
}
