// Who this process is within its job, as launchers say it.
#pragma once

#include <cstdint>
#include <string>

#include "schema/result.h"

namespace vckpt::launch {

struct JobEnvironment {
  std::uint32_t rank = 0;
  std::uint32_t world_size = 1;
  std::string session;      // the launcher's id and restart count; empty when it has none
  std::string coordinator;  // VCKPT_COORDINATOR
  std::string run;          // VCKPT_RUN
  // Of this rank: its share of VCKPT_STAGING_BYTES, which all ranks of a host divide; 0 without.
  std::uint64_t staging_bytes = 0;
};

// torchrun's RANK and WORLD_SIZE, else Slurm's, Open MPI's, PMI's; one rank alone without any. A launcher that does not
// say how many ranks share a host is taken to have them all on one. invalid, naming the variable: no number, a rank
// without a world size, a rank beyond it, fewer staging bytes than ranks.
Result<JobEnvironment> job_environment();

}  // namespace vckpt::launch
