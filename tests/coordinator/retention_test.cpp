// What retention keeps, over histories written by hand and random ones, against a slow oracle.
#include "coordinator/catalog/retention.h"

#include <algorithm>
#include <map>
#include <random>
#include <set>

#include "tests/support/catch.h"

namespace vckpt {
namespace {

CheckpointId id_of(std::uint64_t epoch, std::uint64_t attempt, std::uint64_t step) {
  return {Epoch{epoch}, Attempt{attempt}, Step{step}};
}

// What a run does to its catalog.
struct History {
  Catalog catalog;
  std::optional<CheckpointId> line;
  std::uint64_t epoch = 1;
  std::uint64_t attempt = 0;

  CheckpointId save(std::uint64_t step) {
    Decision decision;
    decision.id = id_of(epoch, ++attempt, step);
    decision.verdict = Verdict::commit;
    decision.parent = line;
    catalog.decisions.push_back(decision);
    line = decision.id;
    return decision.id;
  }
  CheckpointId save_for_ever(std::uint64_t step) {
    const auto id = save(step);
    catalog.decisions.back().keep_forever = true;
    return id;
  }
  void abort(std::uint64_t step) {
    Decision decision;
    decision.id = id_of(epoch, ++attempt, step);
    catalog.decisions.push_back(decision);
  }
  void restart() {
    ++epoch;
    attempt = 0;
    line.reset();
  }
  void load(const CheckpointId& id) { line = id; }
  void damage(const CheckpointId& id) {
    std::erase_if(catalog.decisions, [&](const Decision& decision) { return decision.id == id; });
    catalog.unreadable.push_back({id, corrupt("flipped")});
  }
  std::vector<CheckpointId> retire(std::uint32_t keep) {
    const auto ids = to_retire(catalog, keep);
    catalog.retired.insert(catalog.retired.end(), ids.begin(), ids.end());
    catalog.uncollected.insert(catalog.uncollected.end(), ids.begin(), ids.end());
    std::sort(catalog.retired.begin(), catalog.retired.end());
    std::sort(catalog.uncollected.begin(), catalog.uncollected.end());
    return ids;
  }
  std::vector<CheckpointId> live() const {
    std::vector<CheckpointId> ids;
    for (const auto& decision : catalog.decisions) {
      if (catalog.live(decision)) ids.push_back(decision.id);
    }
    return ids;
  }
  std::vector<std::uint64_t> live_steps() const {
    std::vector<std::uint64_t> steps;
    for (const auto& id : live()) steps.push_back(id.step.value);
    return steps;
  }
};

using Steps = std::vector<std::uint64_t>;

TEST_CASE("the last K along the line stay, in the order of ids and not of steps", "[retention]") {
  History history;
  for (const std::uint64_t step : {9'900, 10'000, 99, 100, 7}) history.save(step);
  CHECK(history.retire(3) == std::vector<CheckpointId>{id_of(1, 1, 9'900), id_of(1, 2, 10'000)});
  CHECK(history.live_steps() == Steps{99, 100, 7});
  CHECK(history.catalog.newest()->id == id_of(1, 5, 7));
  CHECK(history.retire(3).empty());
  history.save(8);
  CHECK(history.retire(3) == std::vector<CheckpointId>{id_of(1, 3, 99)});
}

TEST_CASE("fewer commits than are to be kept are all kept", "[retention]") {
  History history;
  CHECK(history.retire(1).empty());
  for (std::uint64_t step = 1; step <= 4; ++step) {
    history.save(step);
    CHECK(history.retire(4).empty());
  }
  history.save(5);
  CHECK(history.retire(4).size() == 1);
}

TEST_CASE("one more than the last one is kept, whatever is asked", "[retention]") {
  History history;
  for (std::uint64_t step = 1; step <= 5; ++step) history.save(step);
  history.retire(1);
  CHECK(history.live_steps() == Steps{4, 5});
}

TEST_CASE("what was saved to be kept for ever stays and counts among the last", "[retention]") {
  History history;
  history.save_for_ever(1);
  for (const std::uint64_t step : {2, 3}) history.save(step);
  history.save_for_ever(4);
  history.save(5);
  history.retire(2);
  CHECK(history.live_steps() == Steps{1, 4, 5});
}

// save 1..10, load 5, save 6, 7, ...
TEST_CASE("after a rollback the line that lives is kept, and the abandoned future goes when it is long enough",
          "[retention]") {
  History history;
  std::vector<CheckpointId> ids;
  for (std::uint64_t step = 1; step <= 10; ++step) ids.push_back(history.save(step));
  history.restart();
  history.load(ids[4]);
  history.save(6);
  Steps line;
  for (const auto* decision : history.catalog.current_line()) line.push_back(decision->id.step.value);
  CHECK(line == Steps{6, 5, 4, 3, 2, 1});
  SECTION("a line shorter than K loses nothing, and neither does its past") {
    CHECK(history.retire(7).empty());
    CHECK(history.live().size() == 11);
  }
  SECTION("a line of K keeps all of itself; of the future enough newer ones stay") {
    history.retire(6);
    CHECK(history.live_steps() == Steps{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 6});
    history.save(7);
    history.retire(6);
    CHECK(history.live_steps() == Steps{2, 3, 4, 5, 7, 8, 9, 10, 6, 7});
  }
  SECTION("the future is gone once the line has K of its own after it") {
    history.retire(3);
    CHECK(history.live_steps() == Steps{4, 5, 9, 10, 6});
    history.save(7);
    history.retire(3);
    CHECK(history.live_steps() == Steps{5, 10, 6, 7});
    history.save(8);
    history.retire(3);
    CHECK(history.live_steps() == Steps{6, 7, 8});
  }
}

TEST_CASE("an aborted attempt is neither counted nor retired", "[retention]") {
  History history;
  for (std::uint64_t step = 1; step <= 4; ++step) {
    history.save(step);
    history.abort(step);
  }
  history.retire(2);
  CHECK(history.live_steps() == Steps{3, 4});
  CHECK(history.catalog.retired == std::vector<CheckpointId>{id_of(1, 1, 1), id_of(1, 3, 2)});
}

TEST_CASE("a decision that cannot be read holds nothing up and is never retired", "[retention]") {
  History history;
  std::vector<CheckpointId> ids;
  for (std::uint64_t step = 1; step <= 6; ++step) ids.push_back(history.save(step));
  history.damage(ids[2]);
  const auto retired = history.retire(2);
  CHECK(retired == std::vector<CheckpointId>{ids[0], ids[1], ids[3]});
  CHECK(history.live_steps() == Steps{5, 6});
}

TEST_CASE("data goes when it is retired, and nothing live or pinned lies in it", "[retention]") {
  History history;
  for (std::uint64_t step = 1; step <= 5; ++step) history.save(step);
  CHECK(collectable(history.catalog, {}).empty());
  history.retire(2);
  const auto all = std::vector<CheckpointId>{id_of(1, 1, 1), id_of(1, 2, 2), id_of(1, 3, 3)};
  CHECK(collectable(history.catalog, {}) == all);
  CHECK(collectable(history.catalog, {all[1]}) == std::vector<CheckpointId>{all[0], all[2]});
  history.catalog.uncollected = {all[0]};  // the rest has gone before
  CHECK(collectable(history.catalog, {}) == std::vector<CheckpointId>{all[0]});
}

// The rules of retention once more, each commit by itself and by counting.
bool oracle_retires(const Catalog& catalog, const CheckpointId& id, std::uint32_t keep,
                    std::map<CheckpointId, bool>& known) {
  if (const auto found = known.find(id); found != known.end()) return found->second;
  const auto decision = *std::find_if(catalog.decisions.begin(), catalog.decisions.end(),
                                      [&](const Decision& one) { return one.id == id; });
  std::set<CheckpointId> retired(catalog.retired.begin(), catalog.retired.end());
  std::map<CheckpointId, std::optional<CheckpointId>> parents;  // of all commits that can be read
  std::optional<CheckpointId> newest;
  for (const auto& one : catalog.decisions) {
    if (one.verdict != Verdict::commit) continue;
    parents[one.id] = one.parent;
    if (!retired.contains(one.id) && (!newest || *newest < one.id)) newest = one.id;
  }
  std::vector<CheckpointId> line;
  for (auto at = newest; at && parents.contains(*at); at = parents[*at]) {
    if (!retired.contains(*at)) line.push_back(*at);
  }
  const auto place = std::find(line.begin(), line.end(), id) - line.begin();  // the line's length: not on it
  std::uint32_t newer = 0;
  for (const auto& [other, parent] : parents) {
    if (id < other && !retired.contains(other) && !oracle_retires(catalog, other, keep, known)) ++newer;
  }
  return known[id] = !decision.keep_forever && line.size() >= keep && place >= static_cast<std::ptrdiff_t>(keep) &&
                     newer >= std::max<std::uint32_t>(keep, 2);
}

std::vector<CheckpointId> oracle(const Catalog& catalog, std::uint32_t keep) {
  std::vector<CheckpointId> ids;
  std::map<CheckpointId, bool> known;
  for (const auto& decision : catalog.decisions) {
    if (catalog.live(decision) && oracle_retires(catalog, decision.id, keep, known)) ids.push_back(decision.id);
  }
  return ids;
}

// One random run: saves, aborts, restarts, loads of anything live, damage, and retention now and then.
void random_run(std::mt19937_64& random, std::uint32_t keep, std::uint64_t& rollbacks, std::uint64_t& retirements) {
  const auto below = [&](std::uint64_t bound) { return random() % bound; };
  History history;
  std::uint64_t step = 9;
  std::uint64_t committed = 0;
  std::uint64_t damaged = 0;
  for (int event = 0; event < 40; ++event) {
    const auto choice = below(10);
    const auto live = history.live();
    if (choice < 5) {
      step += below(3) == 0 ? 90 : 1;
      below(12) == 0 ? history.save_for_ever(step) : history.save(step);
      ++committed;
    } else if (choice == 5) {
      history.abort(step + 1);
    } else if (choice == 6) {
      history.restart();
    } else if (choice == 7 && !live.empty()) {
      const auto chosen = live[below(live.size())];
      if (chosen != live.back()) ++rollbacks;
      history.load(chosen);
      step = chosen.step.value;
    } else if (choice == 8 && below(4) == 0 && !live.empty()) {
      history.damage(live[below(live.size())]);
      ++damaged;
    } else {
      const auto before = history.catalog.current_line();
      CHECK(to_retire(history.catalog, keep) == oracle(history.catalog, keep));
      const auto ids = history.retire(keep);
      retirements += ids.size();
      const auto after = history.catalog.current_line();
      REQUIRE(after.size() >= std::min<std::size_t>(keep, before.size()));
      for (std::size_t i = 0; i < std::min<std::size_t>(keep, before.size()); ++i) CHECK(after[i] == before[i]);
      CHECK(history.retire(keep).empty());
    }
    CHECK(history.live().size() + damaged >= std::min<std::uint64_t>(std::max(keep, 2U), committed));
  }
}

TEST_CASE("in every history at least the last K that were committed can be loaded", "[retention][property]") {
  const std::uint64_t seed = std::random_device{}();
  INFO("seed " << seed);
  std::mt19937_64 random(seed);
  std::uint64_t rollbacks = 0;
  std::uint64_t retirements = 0;
  for (int run = 0; run < 400; ++run) {
    INFO("run " << run);
    random_run(random, 1 + static_cast<std::uint32_t>(random() % 6), rollbacks, retirements);
  }
  CHECK(rollbacks > 100);
  CHECK(retirements > 500);
}

// Whoever never goes back behind the newest has, after every retention, the last K of all that he committed.
TEST_CASE("without a rollback the last K of all that was committed stay", "[retention][property]") {
  for (std::uint32_t keep = 1; keep <= 5; ++keep) {
    History history;
    std::vector<CheckpointId> committed;
    for (std::uint64_t step = 1; step <= 30; ++step) {
      if (step % 4 == 0) {
        history.restart();
        history.load(committed.back());
      }
      if (step % 3 == 0) history.abort(step);
      committed.push_back(history.save(step));
      history.retire(keep);
      const auto count = std::min<std::size_t>(std::max(keep, newer_commits_min), committed.size());
      CHECK(history.live() ==
            std::vector<CheckpointId>(committed.end() - static_cast<std::ptrdiff_t>(count), committed.end()));
    }
  }
}

}  // namespace
}  // namespace vckpt
