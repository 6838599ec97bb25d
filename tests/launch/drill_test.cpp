// Saves and loads by real processes, in one layout and another, with the reports held to their promises.
#include <cstdlib>

#include "tests/launch/jobs.h"
#include "tests/launch/program.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_folder.h"

using namespace vckpt;
using namespace vckpt::launch;

namespace {

struct Layout {
  int ranks;
  const char* text;
};

// One layout for every number of ranks, and more; the second list only for the mixture of experts.
const std::vector<Layout> dense_layouts = {{1, "dp=1"},          {2, "tp=2"},
                                           {3, "fsdp=3,zero=1"}, {4, "tp=2,dp=2,zero=1"},
                                           {5, "pp=5"},          {6, "fsdp=3,dp=2,zero=1"},
                                           {7, "dp=7,zero=1"},   {8, "tp=2,pp=2,dp=2,zero=1"}};
const std::vector<Layout> expert_layouts = {
    {2, "dp=2,ep=2"}, {4, "tp=2,dp=2,ep=2,zero=1"}, {3, "dp=3,ep=3"}, {2, "fsdp=2"}};

bool long_tests() { return std::getenv("VCKPT_LONG_TESTS") != nullptr; }

// The report of a load says what the plan without data says.
void check_load_report(const Jobs& jobs, const Layout& from, const Layout& to, const std::string& report) {
  const auto planned = vckpt_command(
      {"plan", "--model", jobs.model, "--optimizer", jobs.optimizer, "--layout", from.text, "--to", to.text, "--json"});
  REQUIRE(planned.code == 0);
  for (const auto key : {"bytes_needed", "bytes_received", "storage_bytes_read"}) {
    INFO(key);
    CHECK(number(report, key) == number(planned.out, key));
  }
  CHECK(number(report, "storage_bytes_read") == number(planned.out, "unique_bytes"));
}

// Each of these layouts is saved by, and loaded in the one three further on; in long tests in all of them.
void save_and_load(const std::string& model, const std::vector<Layout>& layouts, const std::vector<std::size_t>& from) {
  for (const auto i : from) {
    const Jobs jobs{{}, model};
    jobs.save(layouts[i].ranks, layouts[i].text);
    for (std::size_t k = 0; k < layouts.size(); ++k) {
      const auto& to = layouts[(i + 3 + k) % layouts.size()];
      check_load_report(jobs, layouts[i], to, jobs.load(to.ranks, to.text));
      if (!long_tests()) break;
    }
  }
}

}  // namespace

TEST_CASE("what 1 or 2 ranks saved, others load bit exact in another layout") {
  save_and_load("llama:tiny", dense_layouts, {0, 1});
}

TEST_CASE("what 3 or 4 ranks saved, others load bit exact in another layout") {
  save_and_load("llama:tiny", dense_layouts, {2, 3});
}

TEST_CASE("what 5 or 6 ranks saved, others load bit exact in another layout") {
  save_and_load("llama:tiny", dense_layouts, {4, 5});
}

TEST_CASE("what 7 or 8 ranks saved, others load bit exact in another layout") {
  save_and_load("llama:tiny", dense_layouts, {6, 7});
}

TEST_CASE("experts are saved and loaded in other layouts") { save_and_load("llama:tiny-moe", expert_layouts, {0, 1}); }

TEST_CASE("a small budget is kept, and changes no byte") {
  const Jobs jobs{{}, "llama:tiny"};
  const auto unique = number(jobs.save(1, "dp=1"), "unique_bytes");
  const auto budget = static_cast<std::uint64_t>(unique / 8);
  const std::vector<std::string> small = {"--staging-bytes", std::to_string(budget), "--step", "2"};
  CHECK(number(jobs.save(1, "dp=1", small), "staging_peak_bytes") <= static_cast<double>(budget));
  CHECK(number(jobs.load(2, "tp=2", small), "staging_peak_bytes") <= static_cast<double>(budget));
}

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
