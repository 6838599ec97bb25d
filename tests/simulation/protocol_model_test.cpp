// The commit protocol, searched: in every order of events within the bounds its rules hold, and each of the mistakes
// that it guards against breaks one of them. VCKPT_LONG_TESTS=1 widens the bounds.
#include <cstdlib>
#include <iostream>

#include "tests/simulation/protocol_search.h"
#include "tests/support/catch.h"

namespace vckpt::model {
namespace {

constexpr std::uint64_t states_max = 12'000'000;  // more of them need more memory than a test should

bool long_tests() { return std::getenv("VCKPT_LONG_TESTS") != nullptr; }

Search explore(const std::string& what, const Bounds& bounds, Mutant mutant = Mutant::nothing) {
  auto found = search(bounds, mutant, states_max);
  std::cout << what << ": " << found.summary() << "\n";
  return found;
}

void check_holds(const Search& found) {
  INFO(found.summary());
  CHECK(found.exhausted);
  CHECK_FALSE(found.refutation.has_value());
}

void check_taken(const Search& found, const std::vector<Action>& wanted) {
  for (const auto action : wanted) {
    INFO("action " << static_cast<int>(action));
    CHECK(found.count(action) > 0);
  }
}

// A broken build breaks this rule.
void check_refuted(const Bounds& bounds, Mutant mutant, const std::string& rule) {
  const auto whole = search(bounds, Mutant::nothing, states_max);
  INFO(whole.summary());
  CHECK_FALSE(whole.refutation.has_value());  // it is the mistake that does it
  const auto found = explore("refuted: " + rule, bounds, mutant);
  REQUIRE(found.refutation.has_value());
  CHECK(found.refutation->rule.find(rule) != std::string::npos);
}

// One coordinator, one session, nothing lost: what a mutant needs more, it asks for.
Bounds plain(std::uint8_t coordinators = 1) {
  Bounds bounds;
  bounds.coordinators = coordinators;
  bounds.impatience = false;
  return bounds;
}

}  // namespace

TEST_CASE("the protocol holds for two coordinators, a reader and a loss of power", "[simulation][model]") {
  Bounds bounds;
  bounds.power_cuts = bounds.short_writes = 1;
  bounds.reader = true;
  const auto found = explore("2 coordinators", bounds);
  check_holds(found);
  check_taken(found, {Action::superseded, Action::taken, Action::roll_forward, Action::give_up_waiting, Action::collect,
                      Action::keep_pinned, Action::remove_aborted, Action::cut_power, Action::write_short});
}

TEST_CASE("the protocol holds for three coordinators, lost workers and a loss of power", "[simulation][model]") {
  Bounds bounds;
  bounds.coordinators = 3;
  bounds.attempts = 1;
  bounds.sessions = 2;
  bounds.worker_loss = true;
  bounds.power_cuts = 1;
  bounds.impatience = long_tests();
  bounds.short_writes = long_tests() ? 1 : 0;
  const auto found = explore("3 coordinators", bounds);
  check_holds(found);
  check_taken(found, {Action::roll_forward, Action::taken, Action::lose_worker, Action::restart_job, Action::load,
                      Action::load_nothing, Action::cut_power});
}

TEST_CASE("the protocol holds when training goes back to an older checkpoint", "[simulation][model]") {
  Bounds bounds;
  bounds.coordinators = 1;
  bounds.attempts = 3;
  bounds.sessions = 2;
  bounds.power_cuts = 1;
  bounds.rollback = true;
  bounds.reader = long_tests();
  const auto found = explore("rollback", bounds);
  check_holds(found);
  check_taken(found, {Action::load, Action::load_nothing, Action::retire, Action::collect});
}

TEST_CASE("the protocol holds for more attempts of more coordinators", "[simulation][model]") {
  if (!long_tests()) return;
  Bounds three;
  three.coordinators = 3;
  three.power_cuts = 1;
  check_holds(explore("3 coordinators, 2 attempts", three));
  Bounds two;
  two.attempts = 3;
  two.reader = true;
  check_holds(explore("2 coordinators, 3 attempts, a reader", two));
  Bounds lossy;
  lossy.sessions = 2;
  lossy.worker_loss = lossy.reader = true;
  lossy.power_cuts = 1;
  check_holds(explore("2 coordinators, 2 sessions, lost workers, a reader", lossy));
}

TEST_CASE("an ack before the decision is refuted", "[simulation][model][mutant]") {
  check_refuted(plain(), Mutant::acks_before_deciding, "no COMMIT");
}

TEST_CASE("a commit without all receipts is refuted", "[simulation][model][mutant]") {
  check_refuted(plain(), Mutant::commits_without_all_receipts, "a COMMIT without its data");
}

TEST_CASE("a successor that rolls forward without a lost worker's receipt is refuted", "[simulation][model][mutant]") {
  auto bounds = plain(2);
  bounds.worker_loss = true;
  check_refuted(bounds, Mutant::rolls_forward_without_all_receipts, "a COMMIT without its data");
}

TEST_CASE("a commit without checking sizes is refuted", "[simulation][model][mutant]") {
  auto bounds = plain();
  bounds.short_writes = 1;
  check_refuted(bounds, Mutant::commits_without_checking_data, "a COMMIT without its data");
}

TEST_CASE("overwriting a decision is refuted", "[simulation][model][mutant]") {
  check_refuted(plain(2), Mutant::overwrites_decisions, "decided twice");
}

TEST_CASE("deleting before ABORT is refuted", "[simulation][model][mutant]") {
  check_refuted(plain(2), Mutant::deletes_before_abort, "neither aborted nor retired");
}

TEST_CASE("retiring before the successor commits is refuted", "[simulation][model][mutant]") {
  check_refuted(plain(2), Mutant::retires_before_the_successor_commits, "retired without a newer commit");
}

TEST_CASE("a retirement that frees the name is refuted", "[simulation][model][mutant]") {
  check_refuted(plain(2), Mutant::frees_the_name_of_a_retired_one, "decided twice");
}

TEST_CASE("acting on a record before its directory is synced is refuted", "[simulation][model][mutant]") {
  auto bounds = plain(2);
  bounds.power_cuts = 1;
  check_refuted(bounds, Mutant::acts_on_unsynced_records, "neither aborted nor retired");
}

TEST_CASE("an ack of a record that is read before it is durable is refuted", "[simulation][model][mutant]") {
  auto bounds = plain();
  bounds.power_cuts = 1;
  check_refuted(bounds, Mutant::acts_on_unsynced_records, "no COMMIT");
}

TEST_CASE("accepting a stale epoch is refuted", "[simulation][model][mutant]") {
  auto bounds = plain(2);
  bounds.reader = true;
  check_refuted(bounds, Mutant::accepts_stale_epochs, "not where training went");
}

TEST_CASE("taking the highest step for the newest is refuted by a rollback", "[simulation][model][mutant]") {
  auto bounds = plain();
  bounds.attempts = 3;
  bounds.sessions = 2;
  bounds.rollback = bounds.reader = true;
  check_refuted(bounds, Mutant::takes_the_highest_step_for_newest, "not where training went");
}

TEST_CASE("collecting without looking at pins is refuted", "[simulation][model][mutant]") {
  auto bounds = plain();
  bounds.reader = true;
  check_refuted(bounds, Mutant::collects_without_looking_at_pins, "under the pin of a reader");
}

TEST_CASE("a reader that believes its pin without looking again is refuted", "[simulation][model][mutant]") {
  auto bounds = plain();
  bounds.reader = true;
  check_refuted(bounds, Mutant::believes_a_pin_without_reading_again, "under the pin of a reader");
}

}  // namespace vckpt::model
