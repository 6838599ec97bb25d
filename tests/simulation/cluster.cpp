#include "tests/simulation/cluster.h"

#include <algorithm>
#include <utility>

#include "tests/support/catch.h"

namespace vckpt {
namespace {

std::string host_of(std::uint32_t rank) { return "node-" + std::to_string(rank / 2); }

// Bytes that a rank's slice of a load takes from its peers.
std::uint64_t received_bytes(RankProcess& process, Rank rank, const Bytes& frame) {
  const auto whole = process.heard.add(frame);
  if (!whole || whole->empty()) return 0;
  const auto message = decode_message(*whole);
  const auto* slice = message ? std::get_if<LoadSlice>(&message->message) : nullptr;
  std::uint64_t total_bytes = 0;
  if (slice == nullptr) return 0;
  for (const auto& receive : slice->receives) total_bytes += receive.source == rank ? 0 : receive.length_bytes;
  return total_bytes;
}

}  // namespace

Cluster::Cluster(ClusterOptions options)
    : options_(std::move(options)),
      random_(options_.seed),
      disk_({.kind = options_.disk,
             .seed = options_.seed,
             .write_grain_bytes = options_.disk == DiskKind::parts ? std::uint64_t{5} << 20 : 1}),
      network_(clock_, static_cast<unsigned>(options_.seed)),
      bulk_(clock_, {.seed = static_cast<unsigned>(options_.seed)}) {
  start_coordinator();
  start_ranks();
}

Cluster::~Cluster() = default;

void Cluster::start_coordinator() {
  const bool second = coordinator_ != nullptr;
  const std::string endpoint = second ? "rival" : "head";
  auto bound = network_.bind(endpoint);
  REQUIRE(bound.has_value());
  auto process = std::make_unique<CoordinatorProcess>(
      clock_, disk_, std::make_unique<WatchedChannel>(*std::move(bound), clock_, endpoint, trace_, nullptr));
  CoordinatorOptions options;
  options.settings.host = endpoint;
  options.settings.deadline = deadline;
  options.settings.grace = std::chrono::seconds(1);
  options.settings.nonce = Nonce{random()};
  options.run_name = "simulation";
  options.run_nonce = Nonce{random()};
  options.endpoint = endpoint;
  CoordinatorActor::Hooks hooks;
  hooks.serving = [self = process.get()](const EpochRecord& epoch) { self->serving = epoch; };
  hooks.exited = [self = process.get()](std::optional<Error> why) { self->exited = std::move(why); };
  hooks.log = [this, name = endpoint + "#" + std::to_string(++coordinators_)](const std::string& line) {
    const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(clock_.now().time_since_epoch()).count();
    log_.push_back(std::to_string(ms) + " ms " + name + ": " + line);
  };
  process->actor = std::make_unique<CoordinatorActor>(
      CoordinatorActor::Seams{process->clock, *process->channel, process->storage, process->compute},
      std::move(options), std::move(hooks));
  process->actor->start();
  (second ? rival_ : coordinator_) = std::move(process);
}

void Cluster::start_ranks() {
  const auto sections = options_.layout(options_.ranks);
  processes_.clear();
  for (std::uint32_t number = 0; number < options_.ranks; ++number) {
    const Rank rank{number};
    auto& process =
        *processes_.emplace_back(std::make_unique<RankProcess>(clock_, disk_, bulk_, options_.staging_bytes));
    process.trainer = std::make_unique<Trainer>(sections, rank, options_.ranks);
    process.incarnation = Incarnation{random()};
    process.channel = std::make_unique<WatchedChannel>(
        network_.connect("head", process.incarnation), clock_, std::to_string(number), trace_,
        [this, &process, rank](const Bytes& frame) { received_bytes_ += vckpt::received_bytes(process, rank, frame); });
    WorkerSettings settings;
    settings.rank = rank;
    settings.world_size = options_.ranks;
    settings.incarnation = process.incarnation;
    settings.host = host_of(number);
    settings.process = 100 + number;
    settings.root = "memory:";
    settings.coordinator = "head";
    settings.transport_address = process.transport.address();
    settings.staging_bytes = options_.staging_bytes;
    settings.deadline = deadline;
    process.actor = std::make_unique<WorkerActor>(
        WorkerSeams{process.clock, *process.channel, process.storage, process.transport, process.compute,
                    [&process](std::uint32_t) -> Arena& { return process.arena; }},
        std::move(settings));
    process.actor->start([&process](Result<Joined> joined) { process.connected = std::move(joined); });
  }
  const auto connected = [this] {
    return std::all_of(processes_.begin(), processes_.end(), [](const auto& one) { return one->connected; });
  };
  const bool all = run(connected, 4 * call_limit);
  INFO(story());
  REQUIRE(all);
  for (const auto& process : processes_) {
    if (!*process->connected) FAIL(process->connected->error().message);
  }
}

void Cluster::step() {
  REQUIRE(clock_.run_next());
  ++events_;
  const auto ended = [](const auto& process) { return process && process->exited; };
  if (ended(coordinator_)) coordinator_.reset();
  if (ended(rival_)) rival_.reset();
  if (rival_at_ && events_ >= *rival_at_) {
    rival_at_.reset();
    if (coordinator_) start_coordinator();
  }
  if (!kill_ || (kill_->count == Kill::Count::events ? events_ : trace_.size()) < kill_->after) return;
  const auto rank = kill_->rank;
  kill_.reset();
  kill(rank);
}

bool Cluster::run(const std::function<bool()>& finished, Duration limit) {
  const TimePoint end = clock_.now() + limit;
  while (!finished()) {
    if (clock_.now() > end) return false;
    step();
  }
  return true;
}

void Cluster::run_for(Duration time) {
  run([] { return false; }, time);
}

Result<Report> Cluster::save(Step step, const SaveOptions& options) {
  ++version_;
  results_.assign(options_.ranks, std::nullopt);
  const TimePoint begun = clock_.now();
  for (std::uint32_t rank = 0; rank < options_.ranks; ++rank) {
    if (!processes_[rank]) continue;
    auto& process = *processes_[rank];
    process.trainer->fill(version_);
    WorkerActor::SaveCallbacks callbacks;
    callbacks.known = [this](CheckpointId id) { CHECK(versions_.try_emplace(id, version_).first->second == version_); };
    callbacks.released = [&process](Result<void>) { process.trainer->wreck(); };  // training goes on
    callbacks.ended = [this, rank](Result<Report> report) { results_[rank] = std::move(report); };
    process.actor->save(step, process.trainer->table(version_), options, std::move(callbacks));
  }
  finish_call();
  call_time_ = clock_.now() - begun;
  for (const auto& result : results_) {
    if (result && !*result) return result->error();
  }
  for (const auto& result : results_) {
    if (result) return *result;
  }
  return unavailable("no rank lives");
}

Result<std::optional<CheckpointId>> Cluster::load(const Selector& selector) {
  results_.assign(options_.ranks, std::nullopt);
  loaded_.assign(options_.ranks, std::nullopt);
  received_bytes_ = 0;
  const TimePoint begun = clock_.now();
  for (std::uint32_t number = 0; number < options_.ranks; ++number) {
    if (!processes_[number]) continue;
    auto& process = *processes_[number];
    const Rank rank{number};
    process.trainer->fill(0);
    process.actor->load(selector, process.trainer->table(0), {}, [this, rank](Result<LoadEnd> end) {
      if (end) judge_load(rank, *end);
      results_[rank.value] = end ? Result<Report>(end->report) : Result<Report>(end.error());
    });
  }
  finish_call();
  call_time_ = clock_.now() - begun;
  std::optional<std::uint32_t> first;
  for (std::uint32_t rank = 0; rank < options_.ranks; ++rank) {
    if (!results_[rank]) continue;
    if (!*results_[rank]) return results_[rank]->error();
    if (!first) first = rank;
    CHECK(loaded_[rank] == loaded_[*first]);
  }
  if (!first) return unavailable("no rank lives");
  return loaded_[*first];
}

void Cluster::judge_load(Rank rank, const LoadEnd& end) {
  INFO("rank " << rank.value);
  loaded_[rank.value] = end.id;
  if (!end.id) {
    CHECK(trainer(rank).differences(0).empty());
    return;
  }
  INFO("loaded " << end.id->name());
  const auto known = versions_.find(*end.id);
  REQUIRE(known != versions_.end());
  for (const auto& piece : trainer(rank).differences(known->second)) FAIL_CHECK("wrong bytes in " << piece);
  CHECK(end.items == trainer(rank).items(known->second));
}

Step Cluster::load_latest() {
  const auto loaded = load();
  INFO(story());
  if (!loaded) FAIL(loaded.error().message);
  REQUIRE(loaded->has_value());
  return (*loaded)->step;
}

void Cluster::finish_call() {
  const auto finished = [this] {
    for (std::uint32_t rank = 0; rank < options_.ranks; ++rank) {
      if (processes_[rank] && !results_[rank]) return false;
    }
    return true;
  };
  const bool ended = run(finished, call_limit);
  INFO(story());
  REQUIRE(ended);  // no silent wait
}

bool Cluster::acknowledged() const {
  return std::any_of(results_.begin(), results_.end(), [](const auto& result) { return result && *result; });
}

void Cluster::fail_storage_call(std::uint64_t k, FaultMoment moment, Code code) {
  faults_before_ = disk_.faults_fired();
  disk_.fail_call(k, code, moment);
}

void Cluster::kill(std::optional<Rank> rank) {
  kill_happened_ = true;
  if (!rank) {
    coordinator_.reset();
    return;
  }
  processes_[rank->value].reset();
  if (rank->value < results_.size()) results_[rank->value].reset();
}

void Cluster::plan(Kill kill) {
  kill_happened_ = false;
  faults_before_ = disk_.faults_fired();
  kill_ = kill;
  kill_->after += kill.count == Kill::Count::events ? events_ : trace_.size();
}

void Cluster::start_rival(std::uint64_t after_events) {
  if (after_events > 0) {
    rival_at_ = events_ + after_events;
    return;
  }
  start_coordinator();
  run([this] { return !rival_ || rival_->serving; }, call_limit);
  REQUIRE((rival_ && rival_->serving));
}

void Cluster::restart(Crash crash, std::optional<std::uint32_t> ranks) {
  processes_.clear();
  coordinator_.reset();
  rival_.reset();
  disk_.clear_faults();
  kill_.reset();
  rival_at_.reset();
  network_.faults = {};
  if (crash == Crash::power) disk_.cut_power(Survivors::none);
  if (crash == Crash::torn_power) disk_.cut_power(Survivors::some);
  options_.ranks = ranks.value_or(options_.ranks);
  results_.clear();
  start_coordinator();
  start_ranks();
}

void Cluster::restart_ranks(std::uint32_t ranks) {
  processes_.clear();
  options_.ranks = ranks;
  results_.clear();
  start_ranks();
}

std::uint64_t Cluster::held_bytes() const {
  std::uint64_t total_bytes = 0;
  for (const auto& process : processes_) total_bytes += process->trainer->held_bytes();
  return total_bytes;
}

Catalog Cluster::catalog() {
  ProcessClock clock(clock_);
  MemoryStorage storage(clock, disk_);
  std::optional<Result<Catalog>> read;
  read_catalog(storage, [&](Result<Catalog> catalog) { read = std::move(catalog); });
  run([&] { return read.has_value(); }, call_limit);
  REQUIRE(read);
  if (!*read) FAIL(read->error().message);
  return **read;
}

std::string Cluster::story() const {
  std::string text;
  for (const auto& line : log_) text += line + "\n";
  return text;
}

}  // namespace vckpt
