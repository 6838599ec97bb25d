// Whatever fails or is killed between any two events of a save: no call lasts longer than its limit (the cluster sees
// to it), what was acknowledged is there after a loss of power, what was not is the old checkpoint or the new one,
// never a mixture (the cluster compares every byte), and the next save works.
#include <cstdlib>

#include "tests/simulation/cluster.h"
#include "tests/support/catch.h"

namespace vckpt {
namespace {

bool long_tests() { return std::getenv("VCKPT_LONG_TESTS") != nullptr; }

// After the fault in the save of step 2.
void check_afterwards(Cluster& cluster, bool acknowledged, Crash crash, std::uint32_t ranks) {
  cluster.restart(crash, ranks);
  const auto latest = cluster.load_latest();
  CHECK((latest == Step{1} || latest == Step{2}));
  if (acknowledged) CHECK(latest == Step{2});
  const auto next = cluster.save(Step{3});
  INFO(cluster.story());
  if (!next) FAIL(next.error().message);
  CHECK(cluster.load_latest() == Step{3});
}

Crash crash_of(std::uint64_t number) { return static_cast<Crash>(1 + number % 3); }

// Survivors of a kill say in one breath who is gone and which save it was.
void check_told(const Cluster& cluster, const std::string& who) {
  for (const auto& result : cluster.results()) {
    if (!result || *result) continue;
    INFO(result->error().message);
    CHECK(result->error().message.find(who) != std::string::npos);
    CHECK(result->error().message.find("save of step 2") != std::string::npos);
  }
}

}  // namespace

TEST_CASE("a storage call that fails leaves the old checkpoint or the new one", "[simulation][crash]") {
  const auto moment = GENERATE(FaultMoment::before, FaultMoment::visible, FaultMoment::after);
  std::uint64_t failed = 0;
  std::uint64_t k = 0;
  for (;; ++k) {
    INFO("call " << k << " fails, moment " << static_cast<int>(moment));
    Cluster cluster({.ranks = 3, .seed = 7 + k});
    REQUIRE(cluster.save(Step{1}).has_value());
    cluster.fail_storage_call(k, moment);
    const auto saved = cluster.save(Step{2});
    const bool fired = cluster.fault_fired();
    failed += saved ? 0 : 1;
    check_afterwards(cluster, cluster.acknowledged(), crash_of(k), 1 + k % 4);
    if (!fired) break;
  }
  CHECK(k > 20);
  if (moment == FaultMoment::before) CHECK(failed > 5);
}

TEST_CASE("a kill between any two events leaves the old checkpoint or the new one", "[simulation][crash]") {
  const bool coordinator = GENERATE(false, true);
  const auto stride = std::uint64_t{long_tests() ? 1U : 11U};
  std::uint64_t lost = 0;
  std::uint64_t k = 0;
  for (;; k += stride) {
    INFO((coordinator ? "the coordinator" : "rank 1") << " is killed after " << k << " events");
    Cluster cluster({.ranks = 3, .seed = 1000 + k});
    REQUIRE(cluster.save(Step{1}).has_value());
    Kill kill;
    if (!coordinator) kill.rank = Rank{1};
    kill.after = k;
    cluster.plan(kill);
    const auto saved = cluster.save(Step{2});
    const bool fired = cluster.fault_fired();
    lost += saved ? 0 : 1;
    if (fired) check_told(cluster, coordinator ? "coordinator" : "rank 1");
    check_afterwards(cluster, cluster.acknowledged(), crash_of(k), 1 + k % 4);
    if (!fired) break;
  }
  CHECK(k > 100);
  CHECK(lost > 5);
}

TEST_CASE("of two coordinators on one root, one commits and nothing acknowledged is lost", "[simulation][crash]") {
  const auto stride = std::uint64_t{long_tests() ? 1U : 13U};
  std::uint64_t superseded = 0;
  for (std::uint64_t k = 1; k < 400; k += stride) {
    INFO("a rival starts after " << k << " events");
    Cluster cluster({.ranks = 2, .seed = 2000 + k});
    REQUIRE(cluster.save(Step{1}).has_value());
    cluster.start_rival(k);
    superseded += cluster.save(Step{2}) ? 0 : 1;
    check_afterwards(cluster, cluster.acknowledged(), crash_of(k), 2);
  }
  CHECK(superseded > 0);
}

TEST_CASE("a load that loses a rank ends for all, and the checkpoint stays", "[simulation][crash]") {
  const auto stride = std::uint64_t{long_tests() ? 1U : 11U};
  std::uint64_t k = 0;
  for (;; k += stride) {
    const bool coordinator = k % 2 == 1;
    INFO((coordinator ? "the coordinator" : "rank 1") << " is killed after " << k << " events");
    Cluster cluster({.ranks = 3, .seed = 3000 + k, .layout = large_layout(3)});
    REQUIRE(cluster.save(Step{1}).has_value());
    Kill kill;
    if (!coordinator) kill.rank = Rank{1};
    kill.after = k;
    cluster.plan(kill);
    static_cast<void>(cluster.load());  // ranks that end well hold the right bytes: the cluster compares them
    const bool fired = cluster.fault_fired();
    cluster.restart(crash_of(k), 2);
    CHECK(cluster.load_latest() == Step{1});
    if (!fired) break;
  }
  CHECK(k > 50);
}

}  // namespace vckpt
