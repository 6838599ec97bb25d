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
  const char* local_world_size;
};

constexpr std::array<Launcher, 4> launchers = {
    {{"RANK", "WORLD_SIZE", "TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT", "LOCAL_WORLD_SIZE"},
     {"SLURM_PROCID", "SLURM_NTASKS", "SLURM_JOB_ID", "SLURM_RESTART_COUNT", "SLURM_NTASKS_PER_NODE"},
     {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "PMIX_NAMESPACE", "", "OMPI_COMM_WORLD_LOCAL_SIZE"},
     {"PMI_RANK", "PMI_SIZE", "PMI_JOBID", "", "MPI_LOCALNRANKS"}}};

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

template <typename Number>
Result<Number> number(const char* name, const char* what) {
  const auto text = variable(name);
  Number value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) {
    return invalid("environment: " + std::string(name) + "='" + text + "' is no " + what);
  }
  return value;
}

Result<std::uint32_t> rank_or_count(const char* name) { return number<std::uint32_t>(name, "rank number or count"); }

Result<std::uint64_t> staging_share(std::uint32_t ranks_on_host) {
  constexpr auto name = "VCKPT_STAGING_BYTES";
  if (variable(name).empty()) return std::uint64_t{0};
  VCKPT_TRY(const auto all, number<std::uint64_t>(name, "number of bytes"));
  if (ranks_on_host == 0 || all < ranks_on_host) {
    return invalid("environment: " + std::string(name) + "=" + std::to_string(all) + " is too little for " +
                   std::to_string(ranks_on_host) + " ranks on this host");
  }
  return all / ranks_on_host;
}

}  // namespace

Result<JobEnvironment> job_environment() {
  JobEnvironment job;
  job.coordinator = variable("VCKPT_COORDINATOR");
  job.run = variable("VCKPT_RUN");
  std::uint32_t ranks_on_host = 1;
  for (const auto& launcher : launchers) {
    if (variable(launcher.rank).empty() && variable(launcher.world_size).empty()) continue;
    VCKPT_TRY(job.rank, rank_or_count(launcher.rank));
    VCKPT_TRY(job.world_size, rank_or_count(launcher.world_size));
    if (job.rank >= job.world_size) {
      return invalid("environment: " + std::string(launcher.rank) + "=" + std::to_string(job.rank) + " is not below " +
                     launcher.world_size + "=" + std::to_string(job.world_size));
    }
    job.session = variable(launcher.id);
    const auto restarts = variable(launcher.restart_count);
    if (!job.session.empty() && !restarts.empty()) job.session += "." + restarts;
    ranks_on_host = job.world_size;
    if (!variable(launcher.local_world_size).empty()) {
      VCKPT_TRY(ranks_on_host, rank_or_count(launcher.local_world_size));
    }
    break;
  }
  VCKPT_TRY(job.staging_bytes, staging_share(ranks_on_host));
  return job;
}

}  // namespace vckpt::launch
