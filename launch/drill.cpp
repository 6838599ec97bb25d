#include "launch/drill.h"

#include <vckpt/worker.h>

#include <charconv>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <fstream>

#include "launch/command.h"
#include "launch/environment.h"
#include "launch/held_state.h"
#include "launch/model_file.h"
#include "launch/root.h"
#include "launch/sharding.h"

namespace vckpt::launch {

namespace {

// A commit may take as long as it moves: the worker's own deadline runs from the last progress.
constexpr std::chrono::hours commit_wait{24};

enum class Moment { never, call, staged };

struct Death {
  Moment moment = Moment::never;
  std::uint32_t rank = 0;
};

Result<Death> parse_death(const std::string& text) {
  if (text.empty()) return Death{};
  const auto at = text.find('@');
  Death death;
  const auto digits = text.substr(0, at);
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), death.rank);
  const auto moment = at == std::string::npos ? "" : text.substr(at + 1);
  death.moment = moment == "call" ? Moment::call : moment == "staged" ? Moment::staged : Moment::never;
  if (error != std::errc() || end != digits.data() + digits.size() || death.moment == Moment::never) {
    return invalid("--die " + text + ": expected RANK@call or RANK@staged");
  }
  return death;
}

// Everything that one drill is made of.
struct Job {
  DrillArguments arguments;
  JobEnvironment environment;
  Parallel parallel;
  Death death;
  SourceModel source;
  std::vector<SectionPlacement> sections;

  Rank rank() const { return Rank{environment.rank}; }
  Content content(Step step) const { return Content(source.file, step.value); }
};

Result<Job> prepare(const DrillArguments& arguments) {
  Job job;
  job.arguments = arguments;
  if (arguments.what != "save" && arguments.what != "load") {
    return invalid("drill " + arguments.what + ": expected save or load");
  }
  if (arguments.root.empty()) return invalid("no root; expected --root ROOT, or VCKPT_ROOT");
  VCKPT_TRY(job.environment, job_environment());
  VCKPT_TRY(job.parallel, parse_parallel(arguments.layout));
  VCKPT_TRY(job.death, parse_death(arguments.die));
  if (job.parallel.world_size() != job.environment.world_size) {
    return invalid("layout " + arguments.layout + " is for " + std::to_string(job.parallel.world_size()) +
                   " ranks, the job has " + std::to_string(job.environment.world_size));
  }
  VCKPT_TRY(const auto optimizer, parse_optimizer(arguments.optimizer));
  VCKPT_TRY(job.source, open_model(arguments.model));
  VCKPT_TRY(job.sections, shard(job.source.model, job.parallel, optimizer));
  return job;
}

Result<std::unique_ptr<Worker>> connect(const Job& job) {
  ConnectOptions options;
  options.rank = job.environment.rank;
  options.world_size = job.environment.world_size;
  options.coordinator = job.environment.coordinator;
  options.root = job.arguments.root;
  options.run = job.environment.run;
  options.session = job.environment.session;
  options.staging_bytes = job.arguments.staging_bytes.value_or(job.environment.staging_bytes);
  options.deadline = std::chrono::milliseconds(static_cast<std::int64_t>(job.arguments.deadline_s * 1000));
  return Worker::connect(options);
}

void maybe_die(const Job& job, Moment moment) {
  if (job.death.moment != moment || job.death.rank != job.environment.rank) return;
  std::raise(SIGKILL);
}

// What one drill has to tell.
struct Outcome {
  CheckpointId id;
  Report report;
  std::optional<bool> verified;  // nothing: nobody asked
  std::uint64_t compared_bytes = 0;
};

// The keys of the report, after what this drill was.
std::string report_json(const Job& job, const Outcome& outcome) {
  Json json;
  json.object().member("drill", job.arguments.what).member("id", outcome.id.name());
  json.member("step", outcome.id.step.value).member("model", job.source.model.name);
  json.member("layout", to_string(job.parallel)).member("optimizer", job.arguments.optimizer).key("verified");
  outcome.verified ? json.value(*outcome.verified) : json.null();
  json.end();
  auto text = json.text();
  const auto report = to_json(outcome.report);
  text.back() = ',';
  return text + report.substr(report.find('{') + 1);
}

void print_save(const Job& job, const Outcome& outcome, std::ostream& out) {
  const auto& report = outcome.report;
  out << "saved " << outcome.id.name() << ": " << job.source.model.name << " over " << to_string(job.parallel) << ", "
      << report.ranks << " ranks\n"
      << "  unique bytes      " << bytes_text(report.unique_bytes) << "\n"
      << "  written           " << bytes_text(report.bytes_written) << "\n";
  if (report.most_loaded_over_bound > 0) {
    out << "  most loaded rank  " << ratio_text(report.most_loaded_over_bound) << " of the best possible\n"
        << "  plan              " << (report.plan_cached ? "known" : "made in " + seconds_text(report.plan_seconds))
        << "\n"
        << "  staging peak      " << bytes_text(report.staging_peak_bytes) << " per rank at most\n";
  } else {
    out << "  the coordinator was lost after the commit, which storage shows\n";
  }
  out << "  training stopped  " << seconds_text(report.stall_seconds) << " on rank " << job.environment.rank << " ("
      << seconds_text(report.stall_copy_seconds) << " copying)\n"
      << "  durable after     " << seconds_text(report.durable_seconds) << "\n";
}

void print_load(const Job& job, const Outcome& outcome, std::ostream& out) {
  const auto& report = outcome.report;
  out << "loaded " << outcome.id.name() << ": " << job.source.model.name << " over " << to_string(job.parallel) << ", "
      << report.ranks << " ranks\n"
      << "  needed            " << bytes_text(report.bytes_needed) << " over all ranks\n"
      << "  read              " << bytes_text(report.storage_bytes_read) << " from storage\n"
      << "  received          " << bytes_text(report.bytes_received) << " from other ranks\n"
      << "  most loaded rank  " << ratio_text(report.most_loaded_over_bound) << " of the best possible\n"
      << "  took              " << seconds_text(report.durable_seconds) << ", plan "
      << seconds_text(report.plan_seconds) << "\n"
      << "  staging peak      " << bytes_text(report.staging_peak_bytes) << " per rank at most\n";
}

Result<void> write_report(const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::trunc);
  file << text << '\n';
  file.close();
  if (!file) return invalid("report " + path + ": cannot be written");
  return {};
}

Result<void> tell(const Job& job, const Outcome& outcome, std::ostream& out) {
  if (job.environment.rank != 0) return {};
  const auto json = report_json(job, outcome);
  if (job.arguments.json) {
    out << json << '\n';
  } else {
    job.arguments.what == "save" ? print_save(job, outcome, out) : print_load(job, outcome, out);
    if (outcome.verified == true) out << "  compared          every byte of rank 0 is as it was saved\n";
  }
  if (!job.arguments.report.empty()) return write_report(job.arguments.report, json);
  return {};
}

// Loads into fresh memory; fills in what was loaded and whether it is true.
Result<std::optional<std::string>> load_into(const Job& job, Worker& worker, const Selector& selector, bool check,
                                             Outcome& outcome) {
  HeldState held(job.sections, job.rank());
  VCKPT_TRY(const auto loaded, worker.load(selector, held.state()));
  if (!loaded) return not_found("root " + job.arguments.root + ": there is no committed checkpoint");
  outcome.id = loaded->id;
  outcome.report = loaded->report;
  if (!check) return std::optional<std::string>();
  const auto difference = held.first_difference(job.content(loaded->id.step), loaded->id.step);
  outcome.verified = !difference.has_value();
  outcome.compared_bytes = held.bytes();
  return difference;
}

int say_difference(const Job& job, const Outcome& outcome, const std::optional<std::string>& difference,
                   std::ostream& out) {
  if (!difference) return exit_ok;
  out << "rank " << job.environment.rank << ": " << outcome.id.name() << ", " << *difference << '\n';
  return exit_check_failed;
}

// One save of what `held` holds, and its load when it is to be verified.
Result<std::optional<std::string>> save_once(const Job& job, Worker& worker, Step step, HeldState& held,
                                             Outcome& outcome) {
  VCKPT_TRY(auto saving, worker.save(step, held.state()));
  maybe_die(job, Moment::staged);
  VCKPT_TRY(outcome.report, saving.wait_committed(commit_wait));
  VCKPT_ASSERT(saving.id().has_value());
  outcome.id = *saving.id();
  if (!job.arguments.verify) return std::optional<std::string>();
  Outcome loaded;
  VCKPT_TRY(const auto difference, load_into(job, worker, outcome.id, true, loaded));
  outcome.verified = loaded.verified;
  return difference;
}

Result<int> drill_save(const Job& job, Worker& worker, std::ostream& out, std::ostream& err) {
  const auto first = job.arguments.step.value_or(1);
  HeldState held(job.sections, job.rank());
  Outcome last;
  std::uint32_t failures = 0;
  for (std::uint32_t i = 0; i < job.arguments.saves; ++i) {
    const Step step{first + i};
    held.fill(job.content(step), step);
    if (i == 0) maybe_die(job, Moment::call);
    Outcome outcome;
    const auto saved = save_once(job, worker, step, held, outcome);
    if (!saved) {
      if (++failures > job.arguments.failures_max || i + 1 == job.arguments.saves) return saved.error();
      err << error_line("vckpt drill", saved.error()) << std::endl;
      continue;
    }
    failures = 0;
    if (job.arguments.saves > 1) out << "saved " << outcome.id.name() << std::endl;
    if (*saved) return say_difference(job, outcome, *saved, out);
    last = outcome;
  }
  VCKPT_TRY_VOID(tell(job, last, out));
  return exit_ok;
}

Result<int> drill_load(const Job& job, Worker& worker, std::ostream& out) {
  const auto selector = job.arguments.step ? Selector(Step{*job.arguments.step}) : Selector(newest);
  Outcome outcome;
  VCKPT_TRY(const auto difference, load_into(job, worker, selector, job.arguments.verify, outcome));
  VCKPT_TRY_VOID(tell(job, outcome, out));
  return say_difference(job, outcome, difference, out);
}

}  // namespace

Result<int> drill(const DrillArguments& arguments, std::ostream& out, std::ostream& err) {
  VCKPT_TRY(const auto job, prepare(arguments));
  // A load makes no root.
  if (arguments.what == "load") {
    VCKPT_TRY([[maybe_unused]] const auto root, Root::open(arguments.root));
  }
  VCKPT_TRY(const auto worker, connect(job));
  VCKPT_TRY(const auto code,
            arguments.what == "save" ? drill_save(job, *worker, out, err) : drill_load(job, *worker, out));
  VCKPT_TRY_VOID(worker->close());
  return code;
}

}  // namespace vckpt::launch
