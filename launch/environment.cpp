#include "launch/environment.h"

#include <array>
#include <charconv>
#include <cstdlib>
#include <string_view>

namespace vckpt::launch {

namespace {

struct Launcher {
  const char* rank;
  const char* world_size;
  const char* id;
  const char* restart_count;
};

constexpr std::array<Launcher, 4> launchers = {
    {{"RANK", "WORLD_SIZE", "TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT"},
     {"SLURM_PROCID", "SLURM_NTASKS", "SLURM_JOB_ID", "SLURM_RESTART_COUNT"},
     {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "PMIX_NAMESPACE", ""},
     {"PMI_RANK", "PMI_SIZE", "PMI_JOBID", ""}}};

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

Result<std::uint32_t> number(const char* name) {
  const auto text = variable(name);
  std::uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) {
    return invalid("environment: " + std::string(name) + "='" + text + "' is no rank number or count");
  }
  return value;
}

}  // namespace

Result<JobEnvironment> job_environment() {
  JobEnvironment job;
  job.coordinator = variable("VCKPT_COORDINATOR");
  job.run = variable("VCKPT_RUN");
  for (const auto& launcher : launchers) {
    if (variable(launcher.rank).empty() && variable(launcher.world_size).empty()) continue;
    VCKPT_TRY(job.rank, number(launcher.rank));
    VCKPT_TRY(job.world_size, number(launcher.world_size));
    if (job.rank >= job.world_size) {
      return invalid("environment: " + std::string(launcher.rank) + "=" + std::to_string(job.rank) + " is not below " +
                     launcher.world_size + "=" + std::to_string(job.world_size));
    }
    job.session = variable(launcher.id);
    const auto restarts = variable(launcher.restart_count);
    if (!job.session.empty() && !restarts.empty()) job.session += "." + restarts;
    break;
  }
  return job;
}

}  // namespace vckpt::launch
