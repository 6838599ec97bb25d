// The commit protocol as a model small enough to be searched whole: what coordinators, workers, a reader and storage
// may do next, as pure values. Every process may pause before any step (all orders are tried) and die between any two;
// power may be lost. It models decisions, receipts and data, not the bytes of disks and messages: those are the
// simulated cluster's.
//   A coordinator claims an epoch, lists, decides what was left undecided, then serves: loads, attempts, retirement of
// all but the newest, collection. Workers keep receipts in memory and offer them to whichever coordinator they join. A
// record is visible before it is durable. A reader pins what it reads.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tests/simulation/protocol_state.h"

namespace vckpt::model {

// What a broken build does.
enum class Mutant : std::uint8_t {
  nothing,
  acks_before_deciding,
  commits_without_all_receipts,
  rolls_forward_without_all_receipts,
  commits_without_checking_data,
  overwrites_decisions,
  deletes_before_abort,
  retires_before_the_successor_commits,
  frees_the_name_of_a_retired_one,
  acts_on_unsynced_records,
  accepts_stale_epochs,
  takes_the_highest_step_for_newest,
  collects_without_looking_at_pins,
  believes_a_pin_without_reading_again,
};

// What may happen in one search, and how often.
struct Bounds {
  std::uint8_t coordinators = 2;
  std::uint8_t attempts = 2;      // over all epochs
  std::uint8_t sessions = 1;      // sets of workers; every one after the first begins with a load
  std::uint8_t power_cuts = 0;    // lose what is not durable, or part of it
  std::uint8_t short_writes = 0;  // workers whose data is not what the plan has, and who do not know
  bool worker_loss = false;
  bool impatience = true;  // workers stop waiting for a decision, and vouch for that attempt no more
  bool rollback = false;   // loads of older ones, and steps that rise by one or two
  bool reader = false;
};

enum class Action : std::uint8_t {
  claim,
  list,
  take_up,
  remove_undecided,
  find_highest,
  superseded,
  create,
  give_up_start,
  decide,
  roll_forward,
  link,
  taken,
  sync,
  confirm,
  tell,
  go_on,
  retire,
  sync_retirement,
  look_at_pins,
  keep_pinned,
  collect,
  remove_aborted,
  load,
  load_nothing,
  crash,
  lose_worker,
  restart_job,
  join,
  write,
  write_short,
  offer,
  read_decision,
  give_up_waiting,
  choose,
  pin,
  read_again,
  stop_reading,
  cut_power,
};
constexpr std::size_t actions = static_cast<std::size_t>(Action::cut_power) + 1;

struct Next {
  State state;
  Action action;
  std::uint8_t who;   // number of the coordinator or worker, from 0
  std::uint8_t what;  // number of the attempt, or `none`
};

// Everything that may happen next.
void append_next(const Bounds& bounds, Mutant mutant, const State& state, std::vector<Next>& next);

// The rule that this state breaks; empty when it breaks none.
std::string broken_rule(const State& state);

std::string describe(const Next& next);

}  // namespace vckpt::model
