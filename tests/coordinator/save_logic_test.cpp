// A save, event by event: who is told what, and what is decided when something goes wrong at each phase.
#include "tests/coordinator/desk.h"

namespace vckpt::coordinator {
namespace {

template <typename Kind>
bool is(const Effect& effect) {
  return std::holds_alternative<Kind>(effect);
}

template <typename Kind>
std::function<bool(const Effect&)> every() {
  return [](const Effect& effect) { return is<Kind>(effect); };
}

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

const Decision& decision_of(const Desk& desk, std::uint64_t attempt) {
  for (const auto& [id, decision] : desk.registers) {
    if (id.attempt == Attempt{attempt}) return decision;
  }
  FAIL("attempt " << attempt << " is not decided");
  throw 0;
}

struct Job : Desk {
  explicit Job(std::uint32_t ranks = 3, Settings settings = usual()) : Desk(std::move(settings)) {
    serve();
    REQUIRE(join(ranks).size() == ranks);
  }
};

TEST_CASE("a save goes from the calls to the ack", "[coordinator][save]") {
  Job job;
  job.call_save(1, 600);
  const auto slices = job.take<SaveSlice>();
  REQUIRE(slices.size() == 3);
  for (std::uint32_t rank = 0; rank < 3; ++rank) {
    const auto& slice = std::get<SaveSlice>(slices[rank].message);
    CHECK(slices[rank].envelope.attempt == Attempt{1});
    CHECK(slice.id.name() == "e000003-a000001-s000600");
    CHECK(slice.plan == some_digest(5));
    REQUIRE(slice.sections.size() == 1);
    REQUIRE(slice.sections[0].pieces.size() == 1);
    CHECK(slice.sections[0].pieces[0].box.offsets[0] == rank * Desk::bytes_per_rank);
  }
  CHECK(job.registers.empty());
  job.receipts(1);
  const auto committed = job.take<Committed>();
  REQUIRE(committed.size() == 3);
  const auto& report = std::get<Committed>(committed[0].message).report;
  CHECK(report.ranks == 3);
  CHECK(report.unique_bytes == 300);
  CHECK(report.bytes_written == 300);
  CHECK(report.most_loaded_over_bound == Approx(1.0));
  CHECK(report.staging_peak_bytes == 12);
  CHECK(report.plan_seconds == Approx(1.0));
  CHECK_FALSE(report.plan_cached);
  const auto& decision = decision_of(job, 1);
  CHECK(decision.verdict == Verdict::commit);
  CHECK(decision.decided_by == Epoch{3});
  CHECK_FALSE(decision.parent.has_value());
  CHECK(decision.sections == std::vector<SectionSummary>{{"model", 1, 300}});
  CHECK(job.removed.empty());
}

TEST_CASE("a plan that is known is neither planned nor published again", "[coordinator][save]") {
  Job job;
  job.save(1, 1);
  job.hold = every<PublishPlan>();
  job.save(2, 2);
  CHECK(job.held.empty());
  CHECK(job.planned == 1);
  CHECK(decision_of(job, 2).parent->step == Step{1});
  const auto committed = job.take<Committed>();
  REQUIRE(committed.size() == 6);
  CHECK(std::get<Committed>(committed[5].message).report.plan_cached);
}

TEST_CASE("bodies are asked of one rank that offers them, again when it repeats its call", "[coordinator][save]") {
  Job job;
  for (std::uint32_t rank = 0; rank < 3; ++rank) job.say(rank, job.save_call(1, 1));
  const auto needs = job.take<NeedBodies>();
  REQUIRE(needs.size() == 1);
  CHECK(needs[0].envelope.rank == Rank{0});
  CHECK(std::get<NeedBodies>(needs[0].message).digests == std::vector<Digest>{some_digest(1)});
  job.say(1, job.save_call(1, 1));
  CHECK(job.take<NeedBodies>().empty());
  job.say(0, job.save_call(1, 1));
  CHECK(job.take<NeedBodies>().size() == 1);
  CHECK(job.planned == 0);
  job.give_bodies(0);
  CHECK(job.planned == 1);
}

TEST_CASE("every message may come twice", "[coordinator][save]") {
  Job job;
  for (int twice = 0; twice < 2; ++twice) job.call_save(1, 1);
  CHECK(job.take<SaveSlice>().size() == 6);  // a repeated call is answered by the slice again
  for (int twice = 0; twice < 2; ++twice) job.send_receipt(0, 1);
  CHECK(job.registers.empty());
  job.say(0, job.save_call(1, 1));
  CHECK(job.take<SaveSlice>().empty());  // its receipt is here
  job.receipts(1);
  CHECK(job.take<Committed>().size() == 3);
  job.send_receipt(1, 1);
  job.say(2, job.save_call(1, 1));
  const auto again = job.take<Committed>();
  REQUIRE(again.size() == 2);
  CHECK(again[0].envelope.rank == Rank{1});
  CHECK(again[0].envelope.attempt == Attempt{1});
  CHECK(job.registers.size() == 1);
}

TEST_CASE("another step at the same call is invalid on all ranks and names two", "[coordinator][save]") {
  Job job;
  job.say(0, job.save_call(1, 6));
  job.say(1, job.save_call(1, 7));
  job.say(2, job.save_call(1, 6));
  const auto aborts = job.take<Aborted>();
  REQUIRE(aborts.size() == 3);
  const auto& error = std::get<Aborted>(aborts[0].message).error;
  CHECK(error.code == Code::invalid);
  CHECK(contains(error.message, "rank 0 (node-0) has step 6"));
  CHECK(contains(error.message, "rank 1 (node-1) has step 7"));
  CHECK(job.registers.empty());
  job.save(2, 8);
  CHECK(job.take<Committed>().size() == 3);
}

TEST_CASE("a save on some ranks and a load on others is invalid", "[coordinator][save]") {
  Job job;
  job.say(0, job.save_call(1, 6));
  job.say(1, job.load_call(1, newest));
  job.say(2, job.save_call(1, 6));
  const auto aborts = job.take<Aborted>();
  REQUIRE(aborts.size() == 3);
  CHECK(std::get<Aborted>(aborts[0].message).error.code == Code::invalid);
}

TEST_CASE("options that differ are invalid", "[coordinator][save]") {
  Job job(2);
  job.say(0, job.save_call(1, 6));
  auto other = job.save_call(1, 6);
  other.options.keep_forever = true;
  job.say(1, other);
  CHECK(job.only<Aborted>().error.code == Code::invalid);
}

TEST_CASE("replicated items that differ abort the save and name item and ranks", "[coordinator][save]") {
  Job job;
  for (std::uint32_t rank = 0; rank < 3; ++rank) {
    auto call = job.save_call(1, 6);
    call.items = {{"optim", "step", Scope::replicated, some_digest(rank == 1 ? 8 : 7)}};
    job.say(rank, call);
  }
  job.give_bodies(0);
  const auto error = job.only<Aborted>().error;
  CHECK(error.code == Code::invalid);
  CHECK(contains(error.message, "optim:step"));
  CHECK(contains(error.message, "rank 0 (node-0), rank 2 (node-2) against rank 1 (node-1)"));
  CHECK(job.registers.empty());
}

TEST_CASE("items: replicated ones are asked of the lowest rank, others of every one", "[coordinator][save]") {
  Job job(2);
  const auto digest = xxh3_128(encode(Value{std::int64_t{4}}));
  for (std::uint32_t rank = 0; rank < 2; ++rank) {
    auto call = job.save_call(1, 6);
    call.items = {{"m", "a", Scope::replicated, digest}, {"m", "b", Scope::per_rank, digest}};
    job.say(rank, call);
  }
  job.give_bodies(0);
  const auto slices = job.take<SaveSlice>();
  REQUIRE(slices.size() == 2);
  CHECK(std::get<SaveSlice>(slices[0].message).items == std::vector<ItemKey>{{"m", "a"}, {"m", "b"}});
  CHECK(std::get<SaveSlice>(slices[1].message).items == std::vector<ItemKey>{{"m", "b"}});
  auto first = job.receipt(0, 1);
  first.items = {{"m", "a", Scope::replicated, Value{std::int64_t{4}}},
                 {"m", "b", Scope::per_rank, Value{std::int64_t{4}}}};
  job.say(0, first, Attempt{1});
  auto second = job.receipt(1, 1);
  SECTION("the value that was offered commits") {
    second.items = {{"m", "b", Scope::per_rank, Value{std::int64_t{4}}}};
    job.say(1, second, Attempt{1});
    CHECK(job.take<Committed>().size() == 2);
  }
  SECTION("another value does not") {
    second.items = {{"m", "b", Scope::per_rank, Value{std::int64_t{5}}}};
    job.say(1, second, Attempt{1});
    CHECK(contains(job.only<Aborted>().error.message, "item 'm:b' does not have the digest"));
  }
  SECTION("nor a missing one") {
    job.say(1, second, Attempt{1});
    CHECK(job.only<Aborted>().error.code == Code::corrupt);
  }
}

TEST_CASE("a receipt that is not what the plan says aborts and names the rank", "[coordinator][save]") {
  Job job(2);
  job.call_save(1, 6);
  job.send_receipt(0, 1);
  auto wrong = job.receipt(1, 1);
  std::string expected;
  SECTION("size") {
    wrong.files[0].data_bytes = 99;
    expected = "99 bytes, the plan has 100";
  }
  SECTION("digests") {
    wrong.files[0].chunk_digests.push_back(1);
    expected = "2 chunk digests for 1 chunks";
  }
  SECTION("no file") {
    wrong.files.clear();
    expected = "no file of section 'model'";
  }
  SECTION("one file too many") {
    wrong.files.push_back(wrong.files[0]);
    expected = "that the plan does not have";
  }
  SECTION("header") {
    wrong.files[0].header_bytes = 100;
    expected = "a header of 100 bytes";
  }
  SECTION("another rank's file") {
    wrong.files[0].rank = Rank{0};
    expected = "of rank 0";
  }
  job.say(1, wrong, Attempt{1});
  const auto error = job.only<Aborted>().error;
  CHECK(error.code == Code::corrupt);
  CHECK(contains(error.message, "rank 1 (node-1)"));
  CHECK(contains(error.message, expected));
  CHECK(decision_of(job, 1).verdict == Verdict::abort);
  CHECK(job.removed.size() == 1);
}

TEST_CASE("votes of another attempt, revision, plan, session or incarnation do not count", "[coordinator][save]") {
  Job job(1);
  job.call_save(1, 6);
  job.say(0, job.receipt(0, 1), Attempt{2});
  auto other_plan = job.receipt(0, 1);
  other_plan.plan = some_digest(6);
  job.say(0, other_plan, Attempt{1});
  auto of = job.envelope(0);
  of.attempt = Attempt{1};
  of.revision = Revision{1};
  job.tell(Received{"w100", of, job.receipt(0, 1)});
  CHECK(job.coordinator.dropped_messages() == 0);
  auto wrong = job.envelope(0);
  wrong.attempt = Attempt{1};
  SECTION("run") { wrong.run = Nonce{12}; }
  SECTION("epoch") { wrong.epoch = Epoch{2}; }
  SECTION("session") { wrong.session = Session{2}; }
  SECTION("incarnation") { wrong.incarnation = Incarnation{9}; }
  SECTION("rank") { wrong.rank = Rank{1}; }
  job.tell(Received{"w100", wrong, job.receipt(0, 1)});
  CHECK(job.coordinator.dropped_messages() == 1);
  CHECK(job.registers.empty());
  job.send_receipt(0, 1);
  CHECK(job.take<Committed>().size() == 1);
}

TEST_CASE("a rank that fails ends the save for all, naming rank and phase", "[coordinator][save]") {
  Job job;
  const auto failed = Failed{Ordinal{1}, Phase::write, exhausted("disk full")};
  SECTION("before anybody called") {
    job.say(1, failed);
    job.call_save(1, 6);
    CHECK(job.registers.empty());
    CHECK(job.planned == 0);
  }
  SECTION("before all called") {
    job.say(0, job.save_call(1, 6));
    job.say(1, failed);
    job.say(2, job.save_call(1, 6));
    CHECK(job.registers.empty());
  }
  SECTION("while writing") {
    job.call_save(1, 6);
    job.say(1, failed, Attempt{1});
    CHECK(decision_of(job, 1).verdict == Verdict::abort);
    CHECK(contains(decision_of(job, 1).reason, "disk full"));
    CHECK(job.removed == std::vector<CheckpointId>{job.ids[1]});
  }
  SECTION("after its own receipt") {
    job.call_save(1, 6);
    job.send_receipt(1, 1);
    job.say(1, failed, Attempt{1});
    job.send_receipt(0, 1);
    job.send_receipt(2, 1);
    CHECK(decision_of(job, 1).verdict == Verdict::abort);
  }
  const auto aborts = job.take<Aborted>();
  CHECK(aborts.size() >= 3);
  CHECK(job.take<Committed>().empty());
  const auto& error = std::get<Aborted>(aborts[0].message).error;
  CHECK(error.code == Code::exhausted);
  CHECK(contains(error.message, "rank 1 (node-1) failed in phase write: disk full"));
  job.save(2, 7);
  CHECK(job.take<Committed>().size() == 3);
}

TEST_CASE("a failure that comes when COMMIT may stand changes nothing", "[coordinator][save]") {
  Job job(2);
  job.hold = every<PublishDecision>();
  job.save(1, 6);
  REQUIRE(job.held.size() == 1);
  job.say(1, Failed{Ordinal{1}, Phase::decide, internal("late")}, Attempt{1});
  job.hold = nullptr;
  job.answer(job.held[0]);
  CHECK(job.take<Committed>().size() == 2);
  CHECK(job.take<Aborted>().empty());
}

TEST_CASE("a silent rank is lost after the deadline, and the save ends naming it", "[coordinator][save]") {
  Job job;
  const bool writing = GENERATE(false, true);
  if (writing) {
    job.call_save(1, 6);
    job.send_receipt(0, 1);
  } else {
    job.say(0, job.save_call(1, 6));
    job.say(2, job.save_call(1, 6));
  }
  for (int half_second = 0; half_second < 6; ++half_second) {
    job.pass(milliseconds(500));
    job.say(0, Progress{Ordinal{1}, Phase::write, static_cast<std::uint64_t>(half_second)});
    job.say(2, Progress{Ordinal{1}, Phase::write, static_cast<std::uint64_t>(half_second)});
  }
  const auto error = job.only<Aborted>().error;
  CHECK(error.code == Code::unavailable);
  CHECK(contains(error.message, "rank 1 (node-1)"));
  CHECK(job.registers.size() == (writing ? 1 : 0));
  job.say(0, job.save_call(2, 7));
  CHECK(contains(job.only<Aborted>().error.message, "rank 1 (node-1) is lost"));
  job.say(1, Progress{});  // it was only stopped
  job.save(3, 8);
  CHECK(job.take<Committed>().size() == 3);
}

TEST_CASE("a rank that lives but does not move is failed with its phase", "[coordinator][save]") {
  Job job(2);
  job.call_save(1, 6);
  for (int half_second = 0; half_second < 6; ++half_second) {
    job.pass(milliseconds(500));
    job.say(0, Progress{Ordinal{1}, Phase::write, static_cast<std::uint64_t>(half_second)});
    job.say(1, Progress{Ordinal{1}, Phase::sync, 5});
  }
  const auto error = job.only<Aborted>().error;
  CHECK(error.code == Code::unavailable);
  CHECK(contains(error.message, "rank 1 (node-1) has not moved for 2 s in phase sync at 5 bytes"));
}

TEST_CASE("a rank that calls late is waited for only for the deadline", "[coordinator][save]") {
  Job job(2);
  job.say(0, job.save_call(1, 6));
  for (int half_second = 0; half_second < 6; ++half_second) {
    job.pass(milliseconds(500));
    for (std::uint32_t rank = 0; rank < 2; ++rank) job.say(rank, Progress{});
  }
  CHECK(contains(job.only<Aborted>().error.message, "not called by rank 1 (node-1)"));
}

TEST_CASE("a rank that leaves before its receipt ends the save, after it not", "[coordinator][save]") {
  Job job(2);
  job.call_save(1, 6);
  SECTION("before") {
    job.say(1, Goodbye{});
    CHECK(contains(job.only<Aborted>().error.message, "rank 1 (node-1) has left"));
  }
  SECTION("after") {
    job.send_receipt(1, 1);
    job.say(1, Goodbye{});
    job.send_receipt(0, 1);
    const auto committed = job.take<Committed>();
    REQUIRE(committed.size() == 1);
    CHECK(committed[0].envelope.rank == Rank{0});
  }
}

TEST_CASE("a coordinator that stood still judges nobody by that time", "[coordinator][save]") {
  Job job(2);
  job.call_save(1, 6);
  job.pass(milliseconds(500));
  job.now += seconds(60);
  job.tell(TimerFired{});
  CHECK(job.take<Aborted>().empty());
  job.receipts(1);
  CHECK(job.take<Committed>().size() == 2);
}

TEST_CASE("a higher epoch at any probe ends the coordinator without an ack", "[coordinator][save]") {
  const int nth = GENERATE(1, 2, 3);
  Job job(2);
  int probes = 0;
  job.hold = [&](const Effect& effect) {
    if (is<ProbeEpoch>(effect) && ++probes == nth) job.highest = Epoch{4};
    return false;
  };
  job.save(1, 6);
  CHECK(probes == nth);
  REQUIRE(job.exited);
  REQUIRE(job.exited->error);
  CHECK(job.exited->error->code == Code::aborted);
  CHECK(contains(job.exited->error->message, "superseded"));
  CHECK(job.take<Committed>().empty());
  CHECK(job.take<Aborted>().size() == (nth == 3 ? 0 : 2));  // after COMMIT the workers read the decision
  CHECK(job.registers.size() == (nth == 3 ? 1 : 0));
}

TEST_CASE("a decision with an unknown outcome is published again, the same bytes", "[coordinator][save]") {
  Job job(2);
  int decisions = 0;
  std::vector<Decision> published;
  auto first_two = [&](const Effect& effect) {
    if (!is<PublishDecision>(effect)) return false;
    published.push_back(std::get<PublishDecision>(effect).decision);
    return ++decisions <= 2;
  };
  SECTION("it did not happen") { job.fail = first_two; }
  SECTION("it happened, the answer was lost") { job.fail_afterwards = first_two; }
  job.save(1, 6);
  CHECK(job.take<Committed>().empty());
  for (int half_second = 0; half_second < 3; ++half_second) {
    job.pass(milliseconds(500));
    for (std::uint32_t rank = 0; rank < 2; ++rank) job.say(rank, Progress{});
  }
  REQUIRE(published.size() == 3);
  CHECK(published[0] == published[2]);
  CHECK(job.take<Committed>().size() == 2);
  CHECK_FALSE(job.exited);
}

TEST_CASE("a commit that stays unknown for the deadline ends the coordinator", "[coordinator][save]") {
  Job job(1);
  job.fail = every<PublishDecision>();
  job.save(1, 6);
  job.pass(seconds(4));
  REQUIRE(job.exited);
  CHECK(job.exited->error->code == Code::unavailable);
  CHECK(job.take<Committed>().empty());
  CHECK(job.take<Aborted>().empty());
}

TEST_CASE("a register that another coordinator has filled ends the coordinator", "[coordinator][save]") {
  Job job(1);
  job.call_save(1, 6);
  job.registers[job.ids[1]].verdict = Verdict::abort;
  job.send_receipt(0, 1);
  REQUIRE(job.exited);
  CHECK(job.exited->error->code == Code::aborted);
  CHECK(job.take<Committed>().empty());
}

TEST_CASE("storage that fails at each phase aborts the save and nothing else", "[coordinator][save]") {
  const int which = GENERATE(0, 1, 2, 3, 4);
  Job job(2);
  bool failed = false;
  job.fail = [&](const Effect& effect) {
    const bool wanted = (which == 0 && is<RunSavePlanner>(effect)) || (which == 1 && is<PublishPlan>(effect)) ||
                        (which == 2 && is<CreateAttempt>(effect)) || (which == 3 && is<PublishSegments>(effect)) ||
                        (which == 4 && is<RemoveData>(effect));
    return wanted && !std::exchange(failed, true);
  };
  job.call_save(1, 6);
  if (which == 4) job.say(0, Failed{Ordinal{1}, Phase::write, invalid("no")}, Attempt{1});
  job.receipts(1);
  CHECK(failed);
  CHECK(job.take<Aborted>().size() >= 2);
  CHECK(job.take<Committed>().empty());
  CHECK(job.registers.size() == (which >= 2 ? 1 : 0));
  for (const auto& [id, decision] : job.registers) CHECK(decision.verdict == Verdict::abort);
  job.pass(milliseconds(500));
  CHECK(job.removed.size() == (which >= 2 ? 1 : 0));
  job.save(2, 7);
  CHECK(job.take<Committed>().size() == 2);
}

TEST_CASE("what is just being made is not removed before it is made", "[coordinator][save]") {
  Job job(2);
  job.hold = every<CreateAttempt>();
  job.call_save(1, 6);
  REQUIRE(job.held.size() == 1);
  job.say(1, Failed{Ordinal{1}, Phase::copy, internal("no memory")});
  CHECK(job.registers.empty());
  CHECK(job.removed.empty());
  job.answer(job.held[0]);
  CHECK(job.registers.size() == 1);
  CHECK(job.removed.size() == 1);
  CHECK(job.take<SaveSlice>().empty());
}

TEST_CASE("an ABORT that cannot be published still ends the call", "[coordinator][save]") {
  Job job(1);
  job.call_save(1, 6);
  job.fail = every<PublishDecision>();
  job.say(0, Failed{Ordinal{1}, Phase::write, exhausted("full")}, Attempt{1});
  for (int half_second = 0; half_second < 8; ++half_second) {
    job.pass(milliseconds(500));
    job.say(0, Progress{});
  }
  CHECK(job.only<Aborted>().error.code == Code::exhausted);
  CHECK(job.removed.empty());
  CHECK_FALSE(job.exited);
}

TEST_CASE("two saves in flight are decided in the order of their ordinals", "[coordinator][save]") {
  Job job(2);
  job.call_save(1, 6);
  job.call_save(2, 7);
  REQUIRE(job.take<SaveSlice>().size() == 4);
  job.receipts(2);
  CHECK(job.registers.empty());
  SECTION("both commit") {
    job.receipts(1);
    CHECK(decision_of(job, 1).verdict == Verdict::commit);
    CHECK(decision_of(job, 2).parent == job.ids[1]);
  }
  SECTION("the first is aborted") {
    job.say(0, Failed{Ordinal{1}, Phase::write, internal("no")}, Attempt{1});
    CHECK(decision_of(job, 1).verdict == Verdict::abort);
    CHECK(decision_of(job, 2).verdict == Verdict::commit);
    CHECK_FALSE(decision_of(job, 2).parent);
  }
  CHECK(job.take<Committed>().size() >= 2);
}

TEST_CASE("a call does not overtake one that no rank was heard to make", "[coordinator][save]") {
  Job job(1);
  job.call_save(2, 7);
  CHECK(job.planned == 0);
  job.call_save(1, 6);
  CHECK(job.ids[1].attempt < job.ids[2].attempt);
  job.receipts(1);
  job.receipts(2);
  job.call_save(4, 9);
  for (int half_second = 0; half_second < 6; ++half_second) {
    job.pass(milliseconds(500));
    job.say(0, Progress{Ordinal{1}, Phase::write, static_cast<std::uint64_t>(half_second)});
  }
  CHECK(contains(job.only<Aborted>().error.message, "waited for call"));
}

TEST_CASE("calls and results are bounded", "[coordinator][save]") {
  Job job(1);
  const auto at_bound = 1 + calls_in_flight_max;
  job.say(0, job.save_call(at_bound, at_bound));
  CHECK(job.coordinator.dropped_messages() == 0);
  job.say(0, job.save_call(at_bound + 1, 1));
  CHECK(job.coordinator.dropped_messages() == 1);
  for (std::uint64_t ordinal = 1; ordinal <= results_kept_max + 2; ++ordinal) job.save(ordinal, ordinal);
  job.take<Committed>();
  job.send_receipt(0, 3);
  CHECK(job.take<Committed>().size() == 1);
  job.send_receipt(0, 2);
  CHECK(contains(job.only<Aborted>().error.message, "ended long ago"));
}

}  // namespace
}  // namespace vckpt::coordinator
