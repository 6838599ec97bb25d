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
};

// torchrun's RANK and WORLD_SIZE, else Slurm's, Open MPI's, PMI's; one rank alone without any. invalid, naming the
// variable: no number, a rank without a world size, a rank beyond it.
Result<JobEnvironment> job_environment();

}  // namespace vckpt::launch
