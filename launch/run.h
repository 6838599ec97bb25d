// `vckpt run`: a coordinator and N local ranks of a program, and an end to all of them whatever happens.
#pragma once

#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

#include "schema/result.h"

namespace vckpt::launch {

constexpr std::uint32_t local_ranks_max = 1024;

struct RunArguments {
  std::uint32_t ranks = 0;
  std::string root;
  std::string run;                   // name of the run; empty: the coordinator's choice
  double deadline_s = 120;           // of the coordinator
  double grace_s = 0;                // after a first failure the others may end by themselves; 0: deadline + 5
  bool restart_coordinator = false;  // when it dies, at most coordinator_restarts_max times
  std::vector<std::string> program;
};

constexpr int coordinator_restarts_max = 10;

// The exit code of the first rank that failed (128 + signal when it was killed), else 0; 128 + signal when SIGTERM,
// SIGINT or SIGHUP ended it all. The ranks' output goes to `out` and `err`, each line with its rank in front.
//
// Ranks get RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, TORCHELASTIC_RUN_ID, TORCHELASTIC_RESTART_COUNT, VCKPT_ROOT
// and, with more than one, VCKPT_COORDINATOR. One rank alone gets no coordinator and needs none.
Result<int> run(const RunArguments& arguments, std::ostream& out, std::ostream& err);

}  // namespace vckpt::launch
