// Saves and loads by real processes in one layout and another: every byte, and what the reports promise. A sample of
// the pairs of layouts; all of them in long tests.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "tests/launch/jobs.h"
#include "tests/launch/program.h"
#include "tests/support/catch.h"

using namespace vckpt;
using namespace vckpt::launch;

namespace {

struct Layout {
  int ranks;
  const char* text;
};
using Layouts = std::vector<Layout>;

// One for every number of ranks.
const Layouts layout_of_ranks = {{1, "dp=1"},          {2, "tp=2"},
                                 {3, "fsdp=3,zero=1"}, {4, "tp=2,dp=2,zero=1"},
                                 {5, "pp=5"},          {6, "fsdp=3,dp=2,zero=1"},
                                 {7, "dp=7,zero=1"},   {8, "tp=2,pp=2,dp=2,zero=1"}};
const Layouts mixes = {{2, "dp=2"},   {8, "tp=2,fsdp=2,pp=2,zero=1"}, {4, "tp=4"}, {6, "cp=2,fsdp=3"},
                       {5, "fsdp=5"}, {8, "tp=2,cp=2,dp=2,zero=1"},   {8, "tp=8"}, {6, "pp=3,dp=2,zero=1"}};
const Layouts expert_mixes = {
    {2, "dp=2,ep=2"}, {4, "tp=2,dp=2,ep=2,zero=1"},   {3, "dp=3,ep=3"},      {8, "pp=2,dp=4,ep=2,zero=1"},
    {2, "fsdp=2"},    {8, "fsdp=2,dp=4,ep=4,zero=1"}, {4, "cp=2,dp=2,ep=2"}, {8, "dp=8,ep=8"}};

enum class Staging { free, eighth };  // of each rank: as much as it likes, or an eighth of the state

bool long_tests() { return std::getenv("VCKPT_LONG_TESTS") != nullptr; }

// What the data files of a root hold behind their headers.
double data_bytes(const std::string& root) {
  std::uint64_t bytes = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(root)) {
    if (entry.path().extension() != ".safetensors") continue;
    std::uint64_t header_bytes = 0;
    std::ifstream(entry.path(), std::ios::binary).read(reinterpret_cast<char*>(&header_bytes), sizeof header_bytes);
    bytes += entry.file_size() - sizeof header_bytes - header_bytes;
  }
  return static_cast<double>(bytes);
}

std::string planned(const Jobs& jobs, const Layout& from, const Layout& to) {
  const auto ran = vckpt_command(
      {"plan", "--model", jobs.model, "--optimizer", jobs.optimizer, "--layout", from.text, "--to", to.text, "--json"});
  REQUIRE(ran.code == 0);
  return ran.out;
}

// All of the model is loaded: every chunk is touched, and read once.
void check_load(const std::string& report, const std::string& plan, const Layout& to) {
  for (const auto key : {"bytes_needed", "bytes_received", "storage_bytes_read"}) {
    INFO(key);
    CHECK(number(report, key) == number(plan, key));
  }
  CHECK(number(report, "storage_bytes_read") == number(plan, "unique_bytes"));
  // Readers are balanced to the bound and one grain, a chunk.
  const auto mean = number(report, "storage_bytes_read") / to.ranks;
  const auto most_loaded = number(report, "most_loaded_over_mean") * mean;
  CHECK(most_loaded <= 1.01 * most_loaded / number(report, "most_loaded_over_bound") + (1 << 20));
  const auto needed = number(report, "bytes_needed");
  const auto received = number(report, "bytes_received");
  CHECK(needed >= number(plan, "unique_bytes"));
  CHECK(received < needed);
  // Where every rank wants all: what a rank has read itself it does not receive.
  if (std::string(to.text) == "dp=" + std::to_string(to.ranks)) {
    CHECK(needed == to.ranks * number(plan, "unique_bytes"));
    CHECK(received == (to.ranks - 1) * number(plan, "unique_bytes"));
  }
}

// Saves over each layout of `from` and loads over the one that stands `distance` further on; in long tests over all.
void save_and_load(const std::string& model, const Layouts& layouts, const std::vector<std::size_t>& from,
                   std::size_t distance, Staging staging) {
  for (const auto i : from) {
    const Jobs jobs{{}, model};
    std::vector<std::string> options;
    double budget = 1e18;
    if (staging != Staging::free) {
      const auto state = number(planned(jobs, layouts[i], layouts[i]), "unique_bytes");
      budget = std::floor(state / 8);
      options = {"--staging-bytes", std::to_string(static_cast<std::uint64_t>(budget))};
    }
    const auto saved = jobs.save(layouts[i].ranks, layouts[i].text, options);
    CHECK(data_bytes(jobs.root()) == number(saved, "bytes_written"));
    CHECK(number(saved, "staging_peak_bytes") <= budget);
    for (std::size_t k = 0; k < layouts.size(); ++k) {
      const auto& to = layouts[(i + distance + k) % layouts.size()];
      const auto loaded = jobs.load(to.ranks, to.text, options);
      INFO(model << " from " << layouts[i].text << " to " << to.text);
      check_load(loaded, planned(jobs, layouts[i], to), to);
      CHECK(number(loaded, "staging_peak_bytes") > 0);
      CHECK(number(loaded, "staging_peak_bytes") <= budget);
      if (!long_tests()) break;
    }
  }
}

std::vector<std::size_t> in_long_tests(std::vector<std::size_t> rows) {
  return long_tests() ? rows : std::vector<std::size_t>();
}

}  // namespace

TEST_CASE("what 1 or 2 ranks saved, others load bit exact in another layout") {
  save_and_load("llama:tiny", layout_of_ranks, {0, 1}, 3, Staging::free);
}

TEST_CASE("what 3 or 4 ranks saved, others load bit exact in another layout") {
  save_and_load("llama:tiny", layout_of_ranks, {2, 3}, 3, Staging::free);
}

TEST_CASE("what 5 or 6 ranks saved, others load bit exact in another layout") {
  save_and_load("llama:tiny", layout_of_ranks, {4, 5}, 3, Staging::free);
}

TEST_CASE("what 7 or 8 ranks saved, others load bit exact in another layout") {
  save_and_load("llama:tiny", layout_of_ranks, {6, 7}, 3, Staging::free);
}

TEST_CASE("layouts are mixed in a staging budget of an eighth of the state") {
  save_and_load("llama:tiny", mixes, {0}, 1, Staging::eighth);
  save_and_load("llama:tiny", mixes, in_long_tests({1, 2}), 1, Staging::eighth);
}

TEST_CASE("layouts are mixed with context and pipeline parallelism") {
  save_and_load("llama:tiny", mixes, {5}, 2, Staging::eighth);
  save_and_load("llama:tiny", mixes, in_long_tests({3, 4}), 1, Staging::eighth);
}

TEST_CASE("layouts are mixed with more ranks than heads") {
  save_and_load("llama:tiny", mixes, {6}, 3, Staging::eighth);
  save_and_load("llama:tiny", mixes, in_long_tests({7}), 1, Staging::eighth);
}

TEST_CASE("experts are saved and loaded in other layouts") {
  save_and_load("llama:tiny-moe", expert_mixes, {1}, 2, Staging::eighth);
  save_and_load("llama:tiny-moe", expert_mixes, in_long_tests({0, 2}), 1, Staging::eighth);
}

TEST_CASE("experts are saved and loaded with pipeline and context parallelism") {
  save_and_load("llama:tiny-moe", expert_mixes, {3}, 3, Staging::eighth);
  save_and_load("llama:tiny-moe", expert_mixes, in_long_tests({4, 6}), 1, Staging::eighth);
}

TEST_CASE("experts are saved and loaded by eight ranks") {
  save_and_load("llama:tiny-moe", expert_mixes, {5}, 3, Staging::eighth);
  save_and_load("llama:tiny-moe", expert_mixes, in_long_tests({7}), 1, Staging::eighth);
}

TEST_CASE("the ranks of a host share its staging bytes") {
  Jobs jobs{{}, "llama:tiny"};
  const auto eighth = std::floor(number(jobs.save(1, "dp=1"), "unique_bytes") / 8);
  jobs.environment = {{"VCKPT_STAGING_BYTES", std::to_string(static_cast<std::uint64_t>(eighth))}};
  for (const auto& [ranks, layout] : {Layout{1, "dp=1"}, Layout{3, "fsdp=3"}}) {
    const auto peak = number(jobs.save(ranks, layout, {"--step", std::to_string(ranks)}), "staging_peak_bytes");
    CHECK(peak > 0);
    CHECK(peak <= eighth / ranks);
  }
  CHECK(number(jobs.load(1, "dp=1"), "staging_peak_bytes") <= eighth);
  // Arguments win.
  CHECK(number(jobs.save(1, "dp=1", {"--staging-bytes", "100000", "--step", "9"}), "staging_peak_bytes") <= 100000);
}
