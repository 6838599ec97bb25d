// A whole job in one thread from one seed: coordinator and ranks, the very actors that run in production, over
// channels, transport, storage, processor and time that are simulated. Between any two events processes can be killed;
// the disk stays. Every load compares every byte with what was saved under the id that it loaded.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "coordinator/catalog/catalog.h"
#include "schema/options.h"
#include "schema/report.h"
#include "tests/simulation/layouts.h"
#include "tests/simulation/simulated_process.h"
#include "tests/support/fake_network.h"
#include "tests/support/memory_disk.h"
#include "tests/support/memory_transport.h"

namespace vckpt {

struct ClusterOptions {
  std::uint32_t ranks = 2;
  std::uint64_t seed = 1;
  MakeLayout layout = plain_layout;
  std::uint64_t staging_bytes = std::uint64_t{64} << 20;  // of each rank
  DiskKind disk = DiskKind::posix;
};

enum class Crash : std::uint8_t {
  processes = 1,   // killed; the disk stays as it is
  power = 2,       // and the disk keeps what was durable
  torn_power = 3,  // and some of the rest
};

// A kill to come: between two events, when so many more of them, or of delivered messages, have been.
struct Kill {
  std::optional<Rank> rank;  // nothing: the coordinator
  enum class Count : std::uint8_t { events, messages } count = Count::events;
  std::uint64_t after = 0;
};

class Cluster {
 public:
  static constexpr Duration deadline = std::chrono::seconds(2);
  static constexpr Duration call_limit = 4 * deadline;  // no call lasts longer, whatever happens

  // Claims an epoch, connects all ranks. Anything unexpected here or below fails the test.
  explicit Cluster(ClusterOptions options);
  ~Cluster();
  Cluster(const Cluster&) = delete;
  Cluster& operator=(const Cluster&) = delete;

  // Calls of all ranks that live; they end when every rank that still lives has its result. The first error of them,
  // by rank. A rank whose load succeeded holds the right bytes and items, or the test fails.
  Result<Report> save(Step step, const SaveOptions& options = {});
  Result<std::optional<CheckpointId>> load(const Selector& selector = newest);
  Step load_latest();
  // Of the last call, by rank; nothing for ranks that were killed.
  const std::vector<std::optional<Result<Report>>>& results() const { return results_; }
  bool acknowledged() const;  // any rank's result is success
  Duration call_time() const { return call_time_; }
  std::uint64_t received_bytes() const { return received_bytes_; }  // that the slices of the last load ask from peers

  // Faults. The k-th storage call from now; fired, it changes nothing any more.
  void fail_storage_call(std::uint64_t k, FaultMoment moment = FaultMoment::before, Code code = Code::unavailable);
  bool fault_fired() const { return disk_.faults_fired() > faults_before_ || kill_happened_; }
  void kill(std::optional<Rank> rank);
  void plan(Kill kill);
  // A second coordinator on the same root, with no ranks; started at once, or after so many events.
  void start_rival(std::uint64_t after_events = 0);

  // Kills everything and starts it again, without faults to come, on the same or another number of ranks.
  void restart(Crash crash = Crash::power, std::optional<std::uint32_t> ranks = std::nullopt);
  // Kills the ranks only; the new ones join the coordinator that lives.
  void restart_ranks(std::uint32_t ranks);
  void set_layout(MakeLayout layout) { options_.layout = std::move(layout); }  // from the next restart on

  std::uint32_t ranks() const { return options_.ranks; }
  std::uint64_t held_bytes() const;
  Trainer& trainer(Rank rank) { return *processes_[rank.value]->trainer; }
  PeerId peer(Rank rank) const { return worker_peer(processes_[rank.value]->incarnation); }
  Catalog catalog();
  void run_for(Duration time);

  VirtualClock& clock() { return clock_; }
  FakeNetwork& network() { return network_; }
  MemoryNetwork& bulk() { return bulk_; }
  MemoryDisk& disk() { return disk_; }
  std::uint64_t events() const { return events_; }
  const std::vector<Delivery>& trace() const { return trace_; }
  std::string story() const;  // what coordinators logged, for people

 private:
  std::uint64_t random() { return random_(); }
  void start_coordinator();
  void start_ranks();
  void step();
  bool run(const std::function<bool()>& finished, Duration limit);
  void finish_call();
  void judge_load(Rank rank, const LoadEnd& end);

  ClusterOptions options_;
  std::mt19937_64 random_;
  VirtualClock clock_;
  MemoryDisk disk_;
  FakeNetwork network_;
  MemoryNetwork bulk_;
  std::vector<Delivery> trace_;
  std::vector<std::string> log_;
  std::unique_ptr<CoordinatorProcess> coordinator_;
  std::unique_ptr<CoordinatorProcess> rival_;
  std::vector<std::unique_ptr<RankProcess>> processes_;  // by rank; null: killed
  Version version_ = 0;
  std::map<CheckpointId, Version> versions_;
  std::vector<std::optional<Result<Report>>> results_;
  std::vector<std::optional<CheckpointId>> loaded_;
  Duration call_time_{};
  std::uint64_t received_bytes_ = 0;
  std::uint64_t faults_before_ = 0;
  std::uint64_t events_ = 0;
  std::optional<Kill> kill_;  // `after`: absolute
  std::optional<std::uint64_t> rival_at_;
  bool kill_happened_ = false;
  std::uint32_t coordinators_ = 0;
};

}  // namespace vckpt
