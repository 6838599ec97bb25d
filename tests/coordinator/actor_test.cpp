// The actor over the seams: real codec, real planner, a disk in memory, and every storage call failing once.
#include "coordinator/catalog/catalog.h"
#include "coordinator/catalog/epochs.h"
#include "coordinator/predecessor_actor.h"
#include "schema/names.h"
#include "tests/coordinator/office.h"
#include "tests/support/catch.h"

namespace vckpt {
namespace {

using namespace std::chrono_literals;

// A reader that comes after everybody is gone.
struct Reader {
  Reader(VirtualClock& time, MemoryDisk& disk) : clock(time), process(time), storage(process, disk) {}
  Catalog catalog() {
    std::optional<Result<Catalog>> answer;
    read_catalog(storage, [&](Result<Catalog> catalog) { answer = std::move(catalog); });
    clock.run_for(5s);
    return answer.value().value();
  }
  CheckpointMetadata checkpoint(const Decision& decision) {
    std::optional<Result<CheckpointMetadata>> answer;
    read_checkpoint(storage, decision, [&](Result<CheckpointMetadata> read) { answer = std::move(read); });
    clock.run_for(5s);
    return answer.value().value();
  }
  VirtualClock& clock;
  ProcessClock process;
  MemoryStorage storage;
};

TEST_CASE("a save over codec, planner and storage can be read back", "[coordinator][actor]") {
  VirtualClock clock;
  MemoryDisk disk({.seed = 3});
  {
    Office office(clock, disk, 3, 1);
    REQUIRE(office.start());
    CHECK(office.serving->epoch == Epoch{1});
    CHECK(office.serving->endpoint == "memory:head");
    REQUIRE(office.join());
    office.save(1, 600);
    REQUIRE(office.run([&] { return office.ended(1); }));
    REQUIRE(office.committed(1));
    const auto& report = std::get<Committed>(office.workers[0].results[1]).report;
    CHECK(report.unique_bytes == 3 * Office::bytes_per_rank);
    CHECK(report.bytes_written == report.unique_bytes);
    CHECK(report.most_loaded_over_bound == Approx(1.0));
    CHECK(disk.contents("RUN").has_value());
    office.coordinator->stop();
    for (auto& worker : office.workers) office.say(worker, Goodbye{});
    office.run([&] { return office.exited; });
    CHECK(office.exited);
    CHECK_FALSE(office.error.has_value());
  }
  Reader reader(clock, disk);
  const auto catalog = reader.catalog();
  REQUIRE(catalog.newest() != nullptr);
  CHECK(catalog.newest()->id.name() == "e000001-a000001-s000600");
  const auto checkpoint = reader.checkpoint(*catalog.newest());
  CHECK(checkpoint.manifest->files.size() == 3);
  CHECK(checkpoint.manifest->world_size == 3);
  CHECK(checkpoint.plan->world_size() == 3);
}

TEST_CASE("the newest is loaded after a restart, and the line continues", "[coordinator][actor]") {
  VirtualClock clock;
  MemoryDisk disk({.seed = 4});
  {
    Office office(clock, disk, 2, 1);
    REQUIRE(office.start());
    REQUIRE(office.join());
    office.save(1, 5);
    REQUIRE(office.run([&] { return office.ended(1); }));
  }
  Office office(clock, disk, 2, 2);
  REQUIRE(office.start());
  CHECK(office.serving->epoch == Epoch{2});
  REQUIRE(office.join());
  for (auto& worker : office.workers) {
    LoadCall call;
    call.ordinal = Ordinal{1};
    call.sections = {{"model", digest(office.body()), {worker.rank}}};
    call.staging_bytes = 64 << 20;
    office.say(worker, call);
  }
  REQUIRE(office.run([&] { return office.workers[0].load && office.workers[1].load; }));
  CHECK(office.workers[0].load->id.step == Step{5});
  for (auto& worker : office.workers) office.say(worker, LoadReceipt{Ordinal{1}, 1000, 1000, 0, 5});
  REQUIRE(office.run([&] { return office.ended(1); }));
  CHECK(std::get<Loaded>(office.workers[1].results[1]).report.storage_bytes_read == 2000);
  office.save(2, 6);
  REQUIRE(office.run([&] { return office.ended(2); }));
  Reader reader(clock, disk);
  const auto catalog = reader.catalog();
  CHECK(catalog.current_line().size() == 2);
}

TEST_CASE("every storage call of a save fails once: acknowledged stands, unacknowledged is old or new",
          "[coordinator][actor][crash]") {
  const auto moment = GENERATE(FaultMoment::before, FaultMoment::visible, FaultMoment::after);
  int faults = 0;
  for (std::uint64_t k = 0; k < 200; ++k) {
    INFO("call " << k << ", moment " << static_cast<int>(moment));
    VirtualClock clock;
    MemoryDisk disk({.seed = k});
    bool acknowledged = false;
    bool fired = false;
    {
      Office office(clock, disk, 2, 1);
      REQUIRE(office.start());
      REQUIRE(office.join());
      office.save(1, 1);
      REQUIRE(office.run([&] { return office.ended(1); }));
      REQUIRE(office.committed(1));
      disk.fail_call(k, Code::unavailable, moment);
      office.save(2, 2);
      REQUIRE(office.run([&] { return office.ended(2); }));
      acknowledged = office.committed(2);
      fired = disk.faults_fired() > 0;
      disk.clear_faults();
      office.save(3, 3);
      REQUIRE(office.run([&] { return office.ended(3); }));
      CHECK(office.committed(3));
    }
    disk.cut_power(Survivors::none);
    Office successor(clock, disk, 2, 2);
    REQUIRE(successor.start());
    successor.run([] { return false; });
    Reader reader(clock, disk);
    const auto catalog = reader.catalog();
    CHECK(catalog.newest()->id.step == Step{3});
    std::size_t commits = 0;
    for (const auto& decision : catalog.decisions) {
      if (decision.verdict != Verdict::commit) continue;
      ++commits;
      CHECK(reader.checkpoint(decision).manifest->files.size() == 2);
    }
    CHECK(commits == (acknowledged ? 3 : 2));
    CHECK(catalog.undecided.empty());
    CHECK(catalog.leftovers.empty());
    if (!fired) break;
    ++faults;
  }
  CHECK(faults > 5);
}

TEST_CASE("a coordinator that dies at every storage call leaves the old checkpoint or the new one",
          "[coordinator][actor][crash]") {
  int deaths = 0;
  for (std::uint64_t calls = 1; calls < 200; ++calls) {
    INFO("after " << calls << " calls");
    VirtualClock clock;
    MemoryDisk disk({.seed = calls});
    bool acknowledged = false;
    bool survived = false;
    {
      Office office(clock, disk, 2, 1);
      REQUIRE(office.start());
      REQUIRE(office.join());
      office.save(1, 1);
      REQUIRE(office.run([&] { return office.ended(1); }));
      const auto until = disk.calls() + calls;
      office.save(2, 2);
      office.run([&] { return disk.calls() >= until || office.ended(2); });
      survived = disk.calls() < until;
      acknowledged = office.committed(2);
    }
    disk.cut_power(calls % 2 == 0 ? Survivors::none : Survivors::some);
    Office successor(clock, disk, 2, 2);
    REQUIRE(successor.start());
    successor.run([] { return false; });  // its sweep
    Reader reader(clock, disk);
    const auto catalog = reader.catalog();
    const auto step = catalog.newest()->id.step;
    CHECK((step == Step{1} || step == Step{2}));
    if (acknowledged) CHECK(step == Step{2});
    CHECK(reader.checkpoint(*catalog.newest()).manifest->files.size() == 2);
    CHECK(catalog.undecided.empty());
    CHECK(catalog.leftovers.empty());
    if (survived) break;
    ++deaths;
  }
  CHECK(deaths > 5);
}

TEST_CASE("a second coordinator supersedes the first, which never acks again", "[coordinator][actor]") {
  VirtualClock clock;
  MemoryDisk disk({.seed = 5});
  Office first(clock, disk, 1, 1);
  REQUIRE(first.start());
  REQUIRE(first.join());
  Office second(clock, disk, 1, 2);
  REQUIRE(second.start());
  CHECK(second.serving->epoch == Epoch{2});
  first.save(1, 1);
  first.run([&] { return first.exited; });
  REQUIRE(first.exited);
  CHECK(first.error->code == Code::aborted);
  CHECK_FALSE(first.committed(1));
  REQUIRE(second.join());
  second.save(1, 1);
  REQUIRE(second.run([&] { return second.ended(1); }));
  CHECK(second.committed(1));
}

TEST_CASE("a root of another run is refused", "[coordinator][actor]") {
  VirtualClock clock;
  MemoryDisk disk({.seed = 6});
  {
    ProcessClock process(clock);
    MemoryStorage storage(process, disk);
    bool made = false;
    open_run(storage, "another", Nonce{1}, [&](Result<RunRecord> run) { made = run.has_value(); });
    clock.run_for(1s);
    REQUIRE(made);
  }
  Office office(clock, disk, 1, 1);
  CHECK_FALSE(office.start());
  REQUIRE(office.exited);
  CHECK(office.error->code == Code::invalid);
}

TEST_CASE("frames that are no messages are dropped and counted", "[coordinator][actor]") {
  VirtualClock clock;
  MemoryDisk disk({.seed = 7});
  Office office(clock, disk, 1, 1);
  REQUIRE(office.start());
  office.channel.receive("0", Bytes(100, std::byte{0xAA}));
  for (auto& frame : split_frames(Bytes(64, std::byte{1}), 1)) office.channel.receive("0", frame);
  office.run([] { return false; });
  CHECK(office.coordinator->dropped_messages() == 2);
  CHECK(office.join());
}

// A worker's side that is answered by a coordinator on the same clock.
class DialChannel final : public Channel {
 public:
  explicit DialChannel(OfficeChannel& office) : office_(office) {
    office_.deliver = [this](const PeerId& peer, const Bytes& frame) {
      if (peer == "dialer" && handler_) handler_(coordinator_peer, frame);
    };
  }
  void on_frame(FrameHandler handler) override { handler_ = std::move(handler); }
  Result<void> send(const PeerId&, Bytes frame) override {
    if (!dead) office_.receive("dialer", std::move(frame));
    return {};
  }
  void drop(const PeerId&) override {}
  bool dead = false;

 private:
  OfficeChannel& office_;
  FrameHandler handler_;
};

TEST_CASE("a predecessor is asked: dead and idle ones may be taken over, busy ones not", "[coordinator][takeover]") {
  VirtualClock clock;
  MemoryDisk disk({.seed = 8});
  Office office(clock, disk, 1, 1);
  REQUIRE(office.start());
  const bool busy = GENERATE(false, true);
  const bool dead = GENERATE(false, true);
  if (busy) REQUIRE(office.join());
  DialChannel dial(office.channel);
  dial.dead = dead;
  PredecessorActor predecessor(clock, dial, {"office", office.run_nonce}, *office.serving, Incarnation{5});
  std::optional<Result<void>> answer;
  const auto asked = clock.now();
  predecessor.ask([&](Result<void> told) { answer = std::move(told); });
  office.run([&] { return answer.has_value(); });
  REQUIRE(answer);
  CHECK(answer->has_value() == (dead || !busy));
  CHECK((clock.now() - asked >= predecessor_wait) == dead);
  if (!answer->has_value()) CHECK(answer->error().message.find("head serves 1 ranks") != std::string::npos);
}

}  // namespace
}  // namespace vckpt
