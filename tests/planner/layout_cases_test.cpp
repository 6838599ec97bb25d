// Every case of layouts/ whose outcome planning decides. Those that something else decides are listed in CMakeLists.txt
// as disabled tests, each with its reason, and here by name.
#include <algorithm>
#include <filesystem>
#include <set>

#include "tests/planner/layout_case.h"
#include "tests/planner/oracle.h"
#include "tests/support/catch.h"

namespace vckpt {
namespace {

const std::set<std::string> decided_elsewhere{
    "ep-experts-that-count-from-0", "lost-rank-that-was-alone", "lost-rank-with-replicas", "one-replica-of-4-disagrees",
    "pp-stages-that-count-from-0",  "replicas-disagree-on-2",   "replicated-item-differs", "staging-too-small-fails",
    "staging-too-small-waits",      "stored-byte-damaged",
};

std::string outcome_of(const std::optional<Error>& error) {
  return error ? std::string(to_string(error->code)) : std::string("ok");
}

void check_phase(const ExpectedPhase& expected, const std::optional<Error>& error) {
  const std::string outcome = outcome_of(error);
  CAPTURE(outcome, error ? error->message : std::string());
  REQUIRE(std::find(expected.outcomes.begin(), expected.outcomes.end(), outcome) != expected.outcomes.end());
  if (!error) return;
  for (const auto& noun : expected.nouns) {
    CAPTURE(noun);
    CHECK(error->message.find(noun) != std::string::npos);
  }
  for (const auto& words : expected.words) {
    CHECK(std::any_of(words.begin(), words.end(),
                      [&](const auto& word) { return error->message.find(word) != std::string::npos; }));
  }
}

template <typename T>
std::optional<Error> error_of(const Result<T>& result) {
  return result ? std::nullopt : std::optional(result.error());
}

std::vector<std::string> in_section(std::vector<std::string> names) {
  for (auto& name : names) name = "model:" + name;
  return names;
}

void check_counts(const LayoutCase& given, const std::map<std::string, std::uint64_t>& counted) {
  for (const auto& [name, value] : counted) {
    if (!given.counts.contains(name)) continue;
    if (name == "needed_bytes" && !given.exact_needs) continue;
    CAPTURE(name);
    CHECK(value == given.counts.at(name));
  }
}

void check_items(const LayoutCase& given, const PlannedLoad& planned) {
  for (std::size_t rank = 0; rank < given.expected_items->size(); ++rank) {
    std::map<std::string, Value> got;
    for (const auto& item : planned.slices[rank].items) got[item.name] = item.value;
    CHECK(got == (*given.expected_items)[rank]);
  }
}

void run_case(const LayoutCase& given) {
  const auto save = plan_save({given.save});
  check_phase(*given.expected_save, error_of(save));
  if (!save) return;
  check_counts(given, {{"unique_bytes", save->balance.unique_bytes},
                       {"held_bytes", save->balance.held_bytes},
                       {"save_descriptors", save->balance.descriptors},
                       {"save_pieces", save->balance.distinct_pieces}});
  if (!given.load) return;
  auto manifest = std::move(*expected_manifest(*save->plan, CheckpointId{Epoch(1), Attempt(1), Step(1)}));
  manifest.items = given.items;
  if (given.with_content) {
    manifest.plan.bytes[0] = std::byte{1};
    for (auto& file : manifest.files) file.chunk_digests.resize((file.data_bytes + (1 << 20) - 1) >> 20);
    CHECK(oracle::wrong_with_plan({given.save}, *save->plan) == "");
  }
  const StoredCheckpoint stored{save->plan, std::make_shared<const Manifest>(std::move(manifest))};
  const auto load = plan_load(stored, *given.load);
  check_phase(*given.expected_load, error_of(load));
  if (!load) return;
  check_counts(given, {{"wanted_unique_bytes", load->wanted_unique_bytes},
                       {"needed_bytes", load->bytes_needed},
                       {"load_descriptors", load->descriptors}});
  if (given.missing) CHECK(load->slices.front().missing == in_section(*given.missing));
  if (given.unexpected) CHECK(load->slices.front().unexpected == in_section(*given.unexpected));
  if (given.expected_items) check_items(given, *load);
  // Carried out byte by byte unless that says nothing more: a hundred thousand scalars are one chunk.
  if (given.with_content && load->descriptors < 50000) CHECK(oracle::wrong_with_load(stored, *given.load, *load) == "");
}

enum class Scale { small, large };

// Large ones have thousands of ranks or tensors.
Scale scale_of(const std::string& id) {
  return id.starts_with("plan-") || id.starts_with("100k-") ? Scale::large : Scale::small;
}

// How many cases of this scale were run.
std::size_t run_cases(Scale scale) {
  std::vector<std::filesystem::path> paths;
  for (const auto& file : std::filesystem::directory_iterator(std::string(VCKPT_TEST_DATA) + "/layouts")) {
    const std::string id = file.path().stem().string();
    if (scale_of(id) == scale && !decided_elsewhere.contains(id)) paths.push_back(file.path());
  }
  std::sort(paths.begin(), paths.end());
  for (const auto& path : paths) {
    INFO(path.stem().string());
    run_case(read_layout_case(path.string()));
  }
  return paths.size();
}

TEST_CASE("cases from public reports come out as they must", "[planner][cases]") {
  CHECK(run_cases(Scale::small) == 107 - 7 - decided_elsewhere.size());
}

TEST_CASE("large cases from public reports come out as they must", "[planner][cases]") {
  CHECK(run_cases(Scale::large) == 7);
}

}  // namespace
}  // namespace vckpt
