#include "worker/worker_logic.h"

#include <memory>
#include <string>
#include <vector>

#include "tests/support/catch.h"

namespace vckpt {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr Nonce run{77};
constexpr Epoch epoch{3};
constexpr Session session{5};

// One worker's logic, driven by hand: keeps the effects of all events, and wakes it as it asked.
struct Bench {
  WorkerLogic logic;
  TimePoint now{seconds(100)};
  std::vector<WorkerEffect> effects;
  TimePoint wake_at = TimePoint::max();

  static WorkerSettings settings() {
    WorkerSettings settings;
    settings.rank = Rank{1};
    settings.world_size = 4;
    settings.incarnation = Incarnation{9};
    settings.host = "node-b";
    settings.root = "/root-of-run";
    settings.coordinator = "tcp://head:1";
    settings.deadline = seconds(10);
    return settings;
  }

  Bench() : logic(settings()) {}

  void feed(const WorkerEvent& event) {
    for (auto& effect : logic.on(event, now)) {
      if (const auto* wake = std::get_if<effect::WakeAt>(&effect)) {
        wake_at = wake->when;
      } else {
        effects.push_back(std::move(effect));
      }
    }
  }

  void hear(Message message, Envelope envelope = {run, epoch, session, Rank{1}, Incarnation{9}, {}, {}, 1}) {
    feed(event::MessageArrived{{envelope, std::move(message)}});
  }

  // Lets time pass, waking the logic when it asked; with pulses from the coordinator while it `lives`.
  void pass(Duration duration, bool lives = true) {
    const TimePoint end = now + duration;
    TimePoint pulse = now + seconds(1);
    for (int steps = 0; steps < 10'000; ++steps) {
      const TimePoint next = std::min({end, wake_at, lives ? pulse : end});
      now = std::max(now, next);
      if (lives && now >= pulse) {
        hear(Pulse{});
        pulse += seconds(1);
      }
      if (now >= wake_at) {
        wake_at = TimePoint::max();
        feed(event::TimerFired{});
      }
      if (now >= end) return;
    }
    FAIL("the logic asks to be woken without end");
  }

  template <typename Effect>
  std::vector<Effect> all() const {
    std::vector<Effect> found;
    for (const auto& effect : effects) {
      if (const auto* one = std::get_if<Effect>(&effect)) found.push_back(*one);
    }
    return found;
  }

  template <typename Sent>
  std::vector<Sent> sent() const {
    std::vector<Sent> found;
    for (const auto& effect : all<effect::SendMessage>()) {
      if (const auto* one = std::get_if<Sent>(&effect.message.message)) found.push_back(*one);
    }
    return found;
  }

  void forget() { effects.clear(); }

  void join() {
    feed(event::Started{});
    feed(event::RunRecordRead{RunRecord{"job", run}});
    Joined joined{session, "job", 10'000, 1000, {}};
    hear(joined, {run, epoch, session, Rank{1}, Incarnation{9}, {}, {}, 1});
    REQUIRE(all<effect::Connected>().size() == 1);
    REQUIRE(all<effect::Connected>()[0].joined.has_value());
    forget();
  }

  static CallContent content() {
    CallContent offered;
    auto body = std::make_shared<LayoutBody>();
    body->tensors.push_back({"w", DType::u8, {4}});
    offered.sections.push_back({"model", Digest{{std::byte{1}}}, {}});
    offered.bodies.push_back(body);
    offered.item_offers.push_back({"model", "step", Scope::replicated, {}});
    offered.items.push_back({"model", "step", Scope::replicated, Value{std::int64_t{7}}});
    return offered;
  }

  void call_save(std::uint64_t ordinal) {
    feed(event::SaveCalled{Ordinal{ordinal}, Step{ordinal * 100}, SaveWish{Step{ordinal * 100}, {}, content()}});
  }

  void call_load(std::uint64_t ordinal, LoadOptions options = {}) {
    feed(event::LoadCalled{Ordinal{ordinal}, LoadWish{newest, std::move(options), 1000, content()}});
  }

  static CheckpointId id(std::uint64_t ordinal) { return {epoch, Attempt{ordinal + 10}, Step{ordinal * 100}}; }

  void hear_slice(std::uint64_t ordinal) {
    hear(SaveSlice{Ordinal{ordinal}, id(ordinal), Digest{{std::byte{9}}}, {}, {{"model", "step"}}},
         {run, epoch, session, Rank{1}, Incarnation{9}, Attempt{ordinal + 10}, Revision{2}, 1});
  }

  void end_save_run(std::uint64_t ordinal) {
    feed(event::SaveStaged{Ordinal{ordinal}});
    feed(event::SaveRunEnded{Ordinal{ordinal}, std::vector<FileRecord>(1), 4096});
  }

  void save_until_receipt(std::uint64_t ordinal) {
    call_save(ordinal);
    hear_slice(ordinal);
    end_save_run(ordinal);
  }
};

TEST_CASE("a worker joins with the nonce of its root, and repeats it until it is answered", "[logic]") {
  Bench bench;
  bench.feed(event::Started{});
  CHECK(bench.all<effect::ReadRunRecord>().size() == 1);
  bench.feed(event::RunRecordRead{not_found("RUN")});
  bench.pass(milliseconds(1500), false);
  CHECK(bench.all<effect::ReadRunRecord>().size() == 2);
  bench.feed(event::RunRecordRead{RunRecord{"job", run}});
  bench.pass(milliseconds(2500));
  const auto sent = bench.all<effect::SendMessage>();
  REQUIRE(sent.size() == 3);
  CHECK(std::get<Join>(sent[0].message.message).world_size == 4);
  CHECK(sent[0].message.envelope.run == run);
  CHECK(sent[0].message.envelope.epoch == Epoch{});
  CHECK(sent[2].message.envelope.sequence > sent[1].message.envelope.sequence);
  bench.hear(Joined{session, "job", 10'000, 1000, {}});
  bench.hear(Joined{session, "job", 10'000, 1000, {}});
  CHECK(bench.all<effect::Connected>().size() == 1);
}

TEST_CASE("joining ends with an error that says what is missing", "[logic]") {
  Bench bench;
  bench.feed(event::Started{});
  std::string word;
  SECTION("no run at the root") {
    bench.feed(event::RunRecordRead{not_found("file 'RUN'")});
    bench.pass(seconds(11), false);
    word = "/root-of-run";
  }
  SECTION("the coordinator is silent") {
    bench.feed(event::RunRecordRead{RunRecord{"job", run}});
    bench.pass(seconds(11), false);
    word = "tcp://head:1 did not answer for 10 s";
  }
  SECTION("the session never fills") {
    bench.feed(event::RunRecordRead{RunRecord{"job", run}});
    bench.pass(seconds(21));
    word = "not all 4 ranks";
  }
  SECTION("it is refused") {
    bench.feed(event::RunRecordRead{RunRecord{"job", run}});
    bench.hear(Refused{invalid("another world size")}, {Nonce{5}, {}, {}, Rank{1}, Incarnation{9}, {}, {}, 1});
    word = "another world size";
  }
  const auto connected = bench.all<effect::Connected>();
  REQUIRE(connected.size() == 1);
  REQUIRE_FALSE(connected[0].joined.has_value());
  CAPTURE(connected[0].joined.error().message);
  CHECK(connected[0].joined.error().message.find(word) != std::string::npos);
  CHECK(connected[0].joined.error().message.find("rank 1 (node-b)") != std::string::npos);
  bench.forget();
  bench.call_save(1);
  CHECK_FALSE(bench.all<effect::SaveEnded>().at(0).report.has_value());
}

TEST_CASE("a save goes from call to commit", "[logic]") {
  Bench bench;
  bench.join();
  bench.call_save(1);
  REQUIRE(bench.sent<SaveCall>().size() == 1);
  CHECK(bench.sent<SaveCall>()[0].step == Step{100});
  bench.pass(milliseconds(2500));
  CHECK(bench.sent<SaveCall>().size() == 3);
  bench.hear(NeedBodies{Ordinal{1}, {Digest{{std::byte{1}}}, Digest{{std::byte{2}}}}});
  REQUIRE(bench.sent<Bodies>().size() == 1);
  CHECK(bench.sent<Bodies>()[0].bodies.size() == 1);
  bench.hear_slice(1);
  bench.hear_slice(1);
  REQUIRE(bench.all<effect::StartSave>().size() == 1);
  CHECK(bench.all<effect::SaveKnown>().at(0).id == Bench::id(1));
  bench.pass(milliseconds(500));
  bench.feed(event::RunMoved{Ordinal{1}, Phase::write, 4096});
  bench.end_save_run(1);
  REQUIRE(bench.all<effect::SaveReleased>().size() == 1);
  CHECK(bench.all<effect::SaveReleased>()[0].staged.has_value());
  REQUIRE(bench.sent<Receipt>().size() == 1);
  CHECK(bench.sent<Receipt>()[0].items.at(0).value == Value{std::int64_t{7}});
  CHECK(bench.sent<Receipt>()[0].staging_peak_bytes == 4096);
  const auto last = bench.all<effect::SendMessage>().back().message.envelope;
  CHECK(last.attempt == Attempt{11});
  CHECK(last.revision == Revision{2});
  bench.pass(milliseconds(1500));
  CHECK(bench.sent<Receipt>().size() == 2);
  Report report;
  report.bytes_written = 123;
  bench.hear(Committed{Ordinal{1}, Bench::id(1), report});
  bench.hear(Committed{Ordinal{1}, Bench::id(1), report});
  const auto ended = bench.all<effect::SaveEnded>();
  REQUIRE(ended.size() == 1);
  REQUIRE(ended[0].report.has_value());
  CHECK(ended[0].report->bytes_written == 123);
  CHECK(ended[0].report->stall_seconds == Approx(3.0));
  CHECK(ended[0].report->stall_copy_seconds == Approx(0.5));
  CHECK(ended[0].report->stall_peers_seconds == Approx(2.5));
  CHECK(ended[0].report->durable_seconds == Approx(4.5));
  bench.forget();
  bench.pass(seconds(3));
  CHECK(bench.sent<Receipt>().empty());
  CHECK(bench.sent<Progress>().size() == 3);
  CHECK(bench.sent<Progress>()[0].ordinal == Ordinal{0});
}

TEST_CASE("messages of another run, epoch, session, rank or incarnation are dropped and counted", "[logic]") {
  Bench bench;
  bench.join();
  bench.save_until_receipt(1);
  const Envelope good{run, epoch, session, Rank{1}, Incarnation{9}, {}, {}, 1};
  std::vector<Envelope> bad(5, good);
  bad[0].run = Nonce{1};
  bad[1].epoch = Epoch{2};
  bad[2].session = Session{4};
  bad[3].rank = Rank{0};
  bad[4].incarnation = Incarnation{8};
  for (const auto& envelope : bad) bench.hear(Committed{Ordinal{1}, Bench::id(1), {}}, envelope);
  bench.hear(Committed{Ordinal{2}, Bench::id(2), {}});
  bench.hear(SaveCall{});
  CHECK(bench.all<effect::SaveEnded>().empty());
  CHECK(bench.logic.dropped_messages() == 6);
  bench.hear(Committed{Ordinal{1}, Bench::id(1), {}});
  CHECK(bench.all<effect::SaveEnded>().size() == 1);
}

TEST_CASE("a commit that comes before this rank's receipt is not believed", "[logic]") {
  Bench bench;
  bench.join();
  bench.call_save(1);
  bench.hear_slice(1);
  bench.hear(Committed{Ordinal{1}, Bench::id(1), {}});
  CHECK(bench.all<effect::SaveEnded>().empty());
}

TEST_CASE("two saves are in flight, the third waits for one of them", "[logic]") {
  Bench bench;
  bench.join();
  bench.save_until_receipt(1);
  bench.save_until_receipt(2);
  bench.call_save(3);
  bench.call_load(4);
  CHECK(bench.sent<SaveCall>().size() == 2);
  bench.hear(Committed{Ordinal{2}, Bench::id(2), {}});
  CHECK(bench.sent<SaveCall>().size() == 3);
  bench.hear(Committed{Ordinal{1}, Bench::id(1), {}});
  CHECK(bench.sent<LoadCall>().empty());
  bench.hear_slice(3);
  bench.end_save_run(3);
  bench.hear(Committed{Ordinal{3}, Bench::id(3), {}});
  CHECK(bench.sent<LoadCall>().size() == 1);
}

TEST_CASE("the job's first failure is told, also to a rank that failed because of it", "[logic]") {
  Bench bench;
  bench.join();
  bench.call_save(1);
  bench.hear_slice(1);
  bench.feed(event::SaveRunEnded{Ordinal{1}, not_found("file 'x': its folder is gone"), 0});
  REQUIRE(bench.sent<Failed>().size() == 1);
  CHECK(bench.sent<Failed>()[0].error == not_found("file 'x': its folder is gone"));
  bench.hear(Aborted{Ordinal{1}, exhausted("rank 0 (node-a) failed in phase write: no space")});
  const auto error = bench.all<effect::SaveEnded>().at(0).report.error();
  CHECK(error.code == Code::exhausted);
  CHECK(error.message == "save of step 100 (call 1): rank 0 (node-a) failed in phase write: no space");
}

TEST_CASE("a rank that cannot take part says so until the call is aborted, and returns its own error", "[logic]") {
  Bench bench;
  bench.join();
  bench.feed(event::SaveCalled{Ordinal{1}, Step{100}, invalid("tensor 'w': no memory")});
  bench.pass(milliseconds(1500));
  REQUIRE(bench.sent<Failed>().size() == 2);
  CHECK(bench.sent<Failed>()[0].error.code == Code::invalid);
  CHECK(bench.all<effect::SaveEnded>().empty());
  bench.hear(Aborted{Ordinal{1}, invalid("rank 1 (node-b) failed in phase call: tensor 'w': no memory")});
  const auto ended = bench.all<effect::SaveEnded>();
  REQUIRE(ended.size() == 1);
  CHECK(ended[0].report.error().code == Code::invalid);
  CHECK(ended[0].report.error().message.find("rank 1 (node-b): save of step 100 (call 1): tensor 'w'") == 0);
  CHECK_FALSE(bench.all<effect::SaveReleased>().at(0).staged.has_value());
}

TEST_CASE("a failure that nobody answers ends at the deadline", "[logic]") {
  Bench bench;
  bench.join();
  bench.feed(event::LoadCalled{Ordinal{1}, invalid("tensor 'w': no memory")});
  bench.pass(seconds(11));
  REQUIRE(bench.all<effect::LoadEnded>().size() == 1);
  CHECK(bench.all<effect::LoadEnded>()[0].end.error().code == Code::invalid);
}

TEST_CASE("an abort stops the run, and the call ends when the run has", "[logic]") {
  Bench bench;
  bench.join();
  bench.call_save(1);
  bench.hear_slice(1);
  bench.hear(Aborted{Ordinal{1}, unavailable("rank 2 (node-c): phase copy")});
  bench.hear(Aborted{Ordinal{1}, unavailable("rank 2 (node-c): phase copy")});
  CHECK(bench.all<effect::StopRun>().size() == 1);
  CHECK(bench.all<effect::SaveEnded>().empty());
  bench.feed(event::SaveRunEnded{Ordinal{1}, aborted("stopped"), 0});
  REQUIRE(bench.all<effect::SaveEnded>().size() == 1);
  CHECK(bench.all<effect::SaveEnded>()[0].report.error().message.find("rank 2 (node-c)") != std::string::npos);
  CHECK(bench.sent<Failed>().empty());
}

TEST_CASE("a local phase that does not move for the deadline fails the call, by name", "[logic]") {
  const auto phase = GENERATE(Phase::copy, Phase::write, Phase::sync);
  Bench bench;
  bench.join();
  bench.call_save(1);
  bench.hear_slice(1);
  for (int i = 0; i < 5; ++i) {
    bench.pass(seconds(6));
    bench.feed(event::RunMoved{Ordinal{1}, phase, static_cast<std::uint64_t>(i) + 1});
  }
  CHECK(bench.sent<Failed>().empty());
  bench.pass(seconds(6));
  bench.feed(event::RunMoved{Ordinal{1}, phase, 5});  // no movement
  bench.pass(seconds(5));
  REQUIRE(bench.sent<Failed>().size() >= 1);
  const auto failed = bench.sent<Failed>()[0];
  CHECK(failed.phase == phase);
  CHECK(failed.error.code == Code::unavailable);
  CHECK(failed.error.message.find("phase " + std::string(to_string(phase)) + ": nothing moved for 10 s") !=
        std::string::npos);
  CHECK(bench.all<effect::StopRun>().size() == 1);
}

TEST_CASE("a lost coordinator: the decision on storage ends the save", "[logic]") {
  Bench bench;
  bench.join();
  bench.save_until_receipt(1);
  bench.pass(seconds(11), false);
  REQUIRE(bench.all<effect::ReadDecision>().size() == 1);
  CHECK(bench.all<effect::ReadDecision>()[0].id == Bench::id(1));
  CHECK(bench.all<effect::SaveEnded>().empty());
  Decision decision;
  decision.id = Bench::id(1);
  const auto ended = [&] { return bench.all<effect::SaveEnded>().at(0).report; };
  SECTION("committed") {
    decision.verdict = Verdict::commit;
    decision.sections = {{"model", 1, 100}, {"optimizer", 2, 11}};
    bench.feed(event::DecisionRead{Ordinal{1}, decision});
    REQUIRE(ended().has_value());
    CHECK(ended()->unique_bytes == 111);
  }
  SECTION("aborted") {
    decision.reason = "rank 3 was lost";
    bench.feed(event::DecisionRead{Ordinal{1}, decision});
    CHECK(ended().error().code == Code::aborted);
    CHECK(ended().error().message.find("rank 3 was lost") != std::string::npos);
  }
  SECTION("undecided") {
    bench.feed(event::DecisionRead{Ordinal{1}, not_found("no decision")});
    CHECK(ended().error().code == Code::unavailable);
    CHECK(ended().error().message.find("lost the coordinator at tcp://head:1") != std::string::npos);
  }
  SECTION("storage hangs too") {
    bench.pass(seconds(11), false);
    CHECK(ended().error().code == Code::unavailable);
  }
  bench.forget();
  bench.call_load(2);
  REQUIRE(bench.all<effect::LoadEnded>().size() == 1);
  CHECK(bench.all<effect::LoadEnded>()[0].end.error().code == Code::unavailable);
}

TEST_CASE("a lost coordinator ends every stage of a call", "[logic]") {
  const int stage = GENERATE(0, 1, 2, 3, 4);
  Bench bench;
  bench.join();
  bench.call_save(1);
  if (stage == 1) bench.hear(NeedBodies{Ordinal{1}, {}});
  if (stage >= 2) bench.hear_slice(1);
  if (stage == 3) bench.feed(event::SaveStaged{Ordinal{1}});
  if (stage == 4) bench.feed(event::SaveRunEnded{Ordinal{1}, unavailable("disk"), 0});
  bench.call_save(2);
  bench.call_save(3);
  bench.pass(seconds(11), false);
  if (!bench.all<effect::StopRun>().empty()) bench.feed(event::SaveRunEnded{Ordinal{1}, aborted("stopped"), 0});
  if (stage >= 2) {
    CHECK(bench.all<effect::ReadDecision>().size() == 1);
    bench.feed(event::DecisionRead{Ordinal{1}, not_found("no decision")});
  }
  CHECK(bench.all<effect::SaveEnded>().size() == 3);
  CHECK(bench.all<effect::SaveReleased>().size() == 3);
}

void load_until_slice(Bench& bench, std::uint64_t ordinal) {
  LoadSlice slice;
  slice.ordinal = Ordinal{ordinal};
  slice.id = Bench::id(1);
  slice.missing = {"model:extra"};
  slice.items = {{"model", "step", Scope::replicated, Value{std::int64_t{7}}}};
  bench.hear(slice);
}

TEST_CASE("a load ends when all ranks are done", "[logic]") {
  Bench bench;
  bench.join();
  bench.call_load(1);
  bench.pass(milliseconds(1100));
  CHECK(bench.sent<LoadCall>().size() == 2);
  load_until_slice(bench, 1);
  load_until_slice(bench, 1);
  CHECK(bench.all<effect::StartLoad>().size() == 1);
  bench.feed(event::LoadRunEnded{Ordinal{1}, LoadReceipt{Ordinal{1}, 10, 20, 30, 40}});
  CHECK(bench.sent<LoadReceipt>().size() == 1);
  CHECK(bench.all<effect::LoadEnded>().empty());
  bench.hear(Loaded{Ordinal{1}, Bench::id(1), {}});
  const auto ended = bench.all<effect::LoadEnded>();
  REQUIRE(ended.size() == 1);
  REQUIRE(ended[0].end.has_value());
  CHECK(ended[0].end->id == Bench::id(1));
  CHECK(ended[0].end->missing.size() == 1);
  CHECK(ended[0].end->items.size() == 1);
}

TEST_CASE("the newest of nothing is nothing", "[logic]") {
  Bench bench;
  bench.join();
  bench.call_load(1);
  bench.hear(Loaded{Ordinal{1}, std::nullopt, {}});
  REQUIRE(bench.all<effect::LoadEnded>().size() == 1);
  CHECK(bench.all<effect::LoadEnded>()[0].end->id == std::nullopt);
}

TEST_CASE("a failed load poisons its sections until a load of all of it succeeds", "[logic]") {
  Bench bench;
  bench.join();
  bench.call_load(1);
  load_until_slice(bench, 1);
  bench.feed(event::LoadRunEnded{Ordinal{1}, corrupt("file rank-000001-0.safetensors: chunk 3")});
  REQUIRE(bench.sent<Failed>().size() == 1);
  bench.hear(Aborted{Ordinal{1}, corrupt("rank 1")});
  CHECK(bench.all<effect::LoadEnded>().at(0).end.error().code == Code::corrupt);

  bench.call_save(2);
  CHECK(bench.sent<SaveCall>().empty());
  REQUIRE(bench.sent<Failed>().size() == 2);
  CHECK(bench.sent<Failed>()[1].error.message.find("section 'model' holds a mixture since call 1") !=
        std::string::npos);
  bench.hear(Aborted{Ordinal{2}, bench.sent<Failed>()[1].error.with_context("rank 1 (node-b) failed")});
  CHECK(bench.all<effect::SaveEnded>().at(0).report.error().code == Code::invalid);

  const auto load = [&](std::uint64_t ordinal, LoadOptions options) {
    bench.call_load(ordinal, std::move(options));
    load_until_slice(bench, ordinal);
    bench.feed(event::LoadRunEnded{Ordinal{ordinal}, LoadReceipt{}});
    bench.hear(Loaded{Ordinal{ordinal}, Bench::id(1), {}});
  };
  LoadOptions part;
  part.only = {"w*"};
  load(3, part);
  bench.call_save(4);
  CHECK(bench.sent<SaveCall>().empty());
  bench.hear(Aborted{Ordinal{4}, aborted("rank 1 cannot")});
  load(5, {});
  bench.call_save(6);
  CHECK(bench.sent<SaveCall>().size() == 1);
}

TEST_CASE("a load that was refused before it touched memory poisons nothing", "[logic]") {
  Bench bench;
  bench.join();
  bench.call_load(1);
  bench.hear(Aborted{Ordinal{1}, invalid("tensor 'w' is not stored")});
  CHECK(bench.all<effect::LoadEnded>().at(0).end.error().code == Code::invalid);
  bench.call_save(2);
  CHECK(bench.sent<SaveCall>().size() == 1);
}

TEST_CASE("closing waits for what was begun, leaving does not", "[logic]") {
  Bench bench;
  bench.join();
  bench.save_until_receipt(1);
  bench.call_save(2);
  bench.hear_slice(2);
  SECTION("close") {
    bench.feed(event::CloseAsked{});
    CHECK(bench.all<effect::Closed>().empty());
    bench.hear(Committed{Ordinal{1}, Bench::id(1), {}});
    bench.end_save_run(2);
    bench.hear(Committed{Ordinal{2}, Bench::id(2), {}});
    CHECK(bench.all<effect::Closed>().size() == 1);
    CHECK(bench.all<effect::SaveEnded>().at(1).report.has_value());
  }
  SECTION("leave") {
    bench.feed(event::LeaveAsked{});
    CHECK(bench.all<effect::StopRun>().size() == 1);
    CHECK(bench.all<effect::Closed>().empty());
    bench.feed(event::SaveRunEnded{Ordinal{2}, aborted("stopped"), 0});
    CHECK(bench.all<effect::Closed>().size() == 1);
    REQUIRE(bench.all<effect::SaveEnded>().size() == 2);
    CHECK(bench.all<effect::SaveEnded>()[1].report.error().code == Code::aborted);
  }
  CHECK(bench.sent<Goodbye>().size() == 1);
  bench.forget();
  bench.call_save(3);
  CHECK_FALSE(bench.all<effect::SaveEnded>().at(0).report.has_value());
}

TEST_CASE("a worker that is refused later on ends its calls", "[logic]") {
  Bench bench;
  bench.join();
  bench.call_load(1);
  bench.hear(Refused{aborted("a newer session took over")});
  REQUIRE(bench.all<effect::LoadEnded>().size() == 1);
  CHECK(bench.all<effect::LoadEnded>()[0].end.error().message.find("a newer session") != std::string::npos);
}

TEST_CASE("an item that was not offered fails the save by name", "[logic]") {
  Bench bench;
  bench.join();
  bench.call_save(1);
  bench.hear(SaveSlice{Ordinal{1}, Bench::id(1), {}, {}, {{"model", "other"}}});
  REQUIRE(bench.sent<Failed>().size() == 1);
  CHECK(bench.sent<Failed>()[0].error.message.find("item 'other'") != std::string::npos);
  CHECK(bench.all<effect::StartSave>().empty());
}

}  // namespace
}  // namespace vckpt
