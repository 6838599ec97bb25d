// Random histories of a job: saves, loads, kills, restarts with other numbers of ranks, over a network that drops
// frames and connections and storage that fails now and then. After every restart the job finds what it was told is
// durable, and when the faults end the next save commits.
#include <cstdlib>
#include <random>

#include "tests/simulation/cluster.h"
#include "tests/support/catch.h"

namespace vckpt {
namespace {

struct Counts {
  std::uint64_t saved = 0;
  std::uint64_t failed = 0;
  std::uint64_t kills = 0;
  std::uint64_t storage_faults = 0;
  std::uint64_t lost_frames = 0;
};

class History {
 public:
  explicit History(std::uint64_t seed)
      : seed_(seed), random_(seed), cluster_({.ranks = ranks(), .seed = seed, .layout = random_layout(seed, seed)}) {}

  void run(Counts& counts) {
    for (int turn = 0; turn < 5; ++turn) {
      disturb(counts);
      save(counts);
      if (below(2) == 0) save(counts);
      counts.lost_frames = counts.lost_frames + cluster_.network().lost_frames();
      cluster_.set_layout(random_layout(seed_, random_()));
      cluster_.restart(static_cast<Crash>(1 + below(3)), ranks());
      find();
    }
    const auto healed = cluster_.save(Step{++step_});
    INFO(cluster_.story());
    if (!healed) FAIL(healed.error().message);
    CHECK(cluster_.load_latest() == Step{step_});
  }

  const std::vector<Delivery>& trace() const { return cluster_.trace(); }

 private:
  std::uint64_t below(std::uint64_t bound) { return random_() % bound; }
  std::uint32_t ranks() { return static_cast<std::uint32_t>(1 + below(4)); }

  void disturb(Counts& counts) {
    if (below(2) == 0) {
      cluster_.network().faults.dropped_per_mille = static_cast<unsigned>(below(60));
      cluster_.network().faults.broken_per_mille = static_cast<unsigned>(below(20));
    }
    if (below(2) == 0) {
      ++counts.storage_faults;
      cluster_.disk().fail_call(below(60), below(4) == 0 ? Code::exhausted : Code::unavailable,
                                static_cast<FaultMoment>(1 + below(3)));
    }
    if (below(2) == 0) {
      ++counts.kills;
      Kill kill;
      if (below(3) != 0) kill.rank = Rank{static_cast<std::uint32_t>(below(cluster_.ranks()))};
      kill.after = below(400);
      cluster_.plan(kill);
    }
  }

  void save(Counts& counts) {
    const Step step{++step_};
    static_cast<void>(cluster_.save(step));
    if (cluster_.acknowledged()) {
      durable_ = step_;
      ++counts.saved;
    } else {
      ++counts.failed;
    }
  }

  // What is durable, or a later save of which nobody heard.
  void find() {
    const auto loaded = cluster_.load();
    INFO(cluster_.story());
    if (!loaded) FAIL(loaded.error().message);
    const std::uint64_t found = *loaded ? (*loaded)->step.value : 0;
    CHECK(found >= durable_);
    CHECK(found <= step_);
    durable_ = found;
  }

  std::uint64_t seed_;
  std::mt19937_64 random_;
  Cluster cluster_;
  std::uint64_t step_ = 0;
  std::uint64_t durable_ = 0;
};

}  // namespace

TEST_CASE("no history loses what was acknowledged", "[simulation][history]") {
  const std::uint64_t first = std::random_device{}();
  const std::uint64_t histories = std::getenv("VCKPT_LONG_TESTS") != nullptr ? 2000 : 30;
  Counts counts;
  for (std::uint64_t seed = first; seed < first + histories; ++seed) {
    INFO("seed " << seed);
    History(seed).run(counts);
  }
  INFO("first seed " << first);
  CHECK(counts.saved > histories);
  CHECK(counts.failed > 0);
  CHECK(counts.kills > 0);
  CHECK(counts.storage_faults > 0);
  CHECK(counts.lost_frames > 0);
}

TEST_CASE("one seed is one history", "[simulation][history]") {
  Counts counts;
  History one(42);
  one.run(counts);
  History again(42);
  again.run(counts);
  CHECK(one.trace().size() > 100);
  CHECK(one.trace() == again.trace());
}

}  // namespace vckpt
