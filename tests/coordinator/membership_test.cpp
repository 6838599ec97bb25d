// Joining, sessions that follow one another, recovery at start, draining, and what a newcomer is told.
#include "tests/coordinator/desk.h"

namespace vckpt::coordinator {
namespace {

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

Decision committed(const CheckpointId& id, std::optional<CheckpointId> parent = std::nullopt) {
  Decision decision;
  decision.id = id;
  decision.verdict = Verdict::commit;
  decision.parent = parent;
  return decision;
}

TEST_CASE("a session is joined when all ranks are there, until then joins get a pulse", "[coordinator][join]") {
  Desk desk;
  desk.serve();
  desk.join_one(0, 2);
  CHECK(desk.take<Pulse>().size() == 1);
  desk.join_one(1, 2);
  const auto joined = desk.take<Joined>();
  REQUIRE(joined.size() == 2);
  const auto& message = std::get<Joined>(joined[1].message);
  CHECK(message.session == Session{1});
  CHECK(message.run_name == "test");
  CHECK(message.deadline_ms == 2000);
  CHECK(message.pulse_ms == 500);
  REQUIRE(message.peers.size() == 2);
  CHECK(message.peers[1].host == "node-1");
  CHECK(message.peers[1].transport_address == "peer:1");
  CHECK(message.peers[1].incarnation == Incarnation{101});
  CHECK(joined[1].peer == "w101");
  desk.join_one(1, 2);  // the answer was lost
  CHECK(desk.take<Joined>().size() == 1);
}

TEST_CASE("joins that cannot be served are refused", "[coordinator][join]") {
  auto settings = Desk::usual();
  settings.ranks = GENERATE(0u, 2u);
  Desk desk(settings);
  desk.serve();
  desk.join_one(0, 2);
  desk.take<Pulse>();
  std::string expected;
  SECTION("another root") {
    desk.run = Nonce{12};
    desk.join_one(1, 2);
    expected = "rank 1 (node-1): its root is not the coordinator's root";
  }
  SECTION("another world") {
    desk.join_one(1, 3);
    expected = settings.ranks == 0 ? "the session that is forming has 2" : "this coordinator serves 2";
  }
  SECTION("out of range") {
    desk.join_one(2, 2);
    expected = "rank 2 (node-2) is out of range";
  }
  const auto error = desk.only<Refused>().error;
  CHECK(error.code == Code::invalid);
  CHECK(contains(error.message, expected));
}

TEST_CASE("who fell silent while a session formed does not hold up another world size", "[coordinator][join]") {
  Desk desk;
  desk.serve();
  desk.join_one(0, 2);
  desk.pass(seconds(6));
  CHECK(desk.join(3).size() == 3);
}

TEST_CASE("ranks that wait for others hear after the deadline who is missing", "[coordinator][join]") {
  Desk desk;
  desk.serve();
  for (int half_second = 0; half_second < 5; ++half_second) {
    desk.join_one(0, 7);
    CHECK(desk.take<Refused>().empty());
    desk.pass(milliseconds(500));
  }
  desk.join_one(0, 7);
  const auto error = desk.only<Refused>().error;
  CHECK(error.code == Code::unavailable);
  CHECK(contains(error.message, "rank 1, rank 2, rank 3, rank 4 and 2 more ranks did not join"));
  CHECK(desk.join(7, "", 200).size() == 7);  // another start of the job
}

TEST_CASE("sessions of different names form beside each other, up to a bound", "[coordinator][join]") {
  Desk desk;
  desk.serve();
  for (std::size_t number = 0; number < forming_sessions_max; ++number)
    desk.join_one(0, 2, "s" + std::to_string(number));
  CHECK(desk.take<Refused>().empty());
  desk.join_one(0, 2, "one too many");
  CHECK(desk.only<Refused>().error.code == Code::exhausted);
  desk.join_one(1, 2, "s3");
  CHECK(desk.take<Joined>().size() == 2);
}

TEST_CASE("a new session fences the older one at once, after its attempts are decided", "[coordinator][join]") {
  Desk desk;
  desk.serve();
  desk.join(2);
  desk.call_save(1, 6);
  REQUIRE(desk.take<SaveSlice>().size() == 2);
  desk.join_one(0, 3, "second", 200);
  desk.join_one(1, 3, "second", 200);
  CHECK(desk.registers.empty());
  desk.hold = [](const Effect& effect) { return std::holds_alternative<PublishDecision>(effect); };
  desk.join_one(2, 3, "second", 200);
  REQUIRE(desk.held.size() == 1);
  CHECK(desk.take<Joined>().empty());
  desk.hold = nullptr;
  desk.answer(desk.held[0]);
  REQUIRE(desk.registers.size() == 1);
  CHECK(desk.registers.begin()->second.verdict == Verdict::abort);
  const auto joined = desk.take<Joined>();
  REQUIRE(joined.size() == 3);
  CHECK(joined[0].envelope.session == Session{2});
  CHECK(desk.dropped == std::vector<std::string>{"w100", "w101"});
  desk.send_receipt(0, 1);  // of the fenced session
  CHECK(desk.coordinator.dropped_messages() == 1);
}

TEST_CASE("the lineage that must work: save 1 to 10, load 5, save 6, kill all, load", "[coordinator][lineage]") {
  Desk desk;
  desk.serve();
  desk.join(1);
  for (std::uint64_t step = 1; step <= 10; ++step) desk.save(step, step);
  CHECK(desk.take<Committed>().size() == 10);
  desk.say(0, desk.load_call(11, Step{5}));
  CHECK(desk.only<LoadSlice>().id.step == Step{5});
  desk.say(0, LoadReceipt{Ordinal{11}, 60, 50, 0, 9});
  const auto loaded = desk.only<Loaded>();
  REQUIRE(loaded.id);
  CHECK(loaded.report.unique_bytes == 50);
  CHECK(loaded.report.storage_bytes_read == 60);
  CHECK(loaded.report.staging_peak_bytes == 9);
  desk.save(12, 6);
  CHECK(desk.registers.rbegin()->second.parent == loaded.id);

  Desk after;  // another coordinator on the same root
  after.epoch = after.highest = Epoch{4};
  for (const auto& [id, decision] : desk.registers) after.catalog.decisions.push_back(decision);
  after.serve();
  after.join(1);
  after.say(0, after.load_call(1, newest));
  after.give_bodies(0);
  const auto slice = after.only<LoadSlice>();
  CHECK(slice.id.step == Step{6});
  CHECK(slice.id == desk.registers.rbegin()->first);
  after.say(0, LoadReceipt{Ordinal{1}, 0, 0, 0, 0});
  after.save(2, 7);
  CHECK(after.registers.rbegin()->second.parent == slice.id);
}

TEST_CASE("a session that loads nothing begins a new line", "[coordinator][lineage]") {
  Desk desk;
  desk.catalog.decisions = {committed({Epoch{1}, Attempt{1}, Step{9}})};
  desk.serve();
  desk.join(1);
  desk.save(1, 1);
  CHECK_FALSE(desk.registers.rbegin()->second.parent);
}

TEST_CASE("what predecessors left undecided is aborted and swept before anybody is served", "[coordinator][recovery]") {
  Desk desk;
  const CheckpointId first{Epoch{1}, Attempt{1}, Step{1}};
  const CheckpointId second{Epoch{2}, Attempt{1}, Step{1}};
  const CheckpointId swept{Epoch{1}, Attempt{2}, Step{2}};
  desk.catalog.undecided = {first, second};
  desk.catalog.leftovers = {swept};
  SECTION("as usual") {}
  SECTION("with an answer lost") {
    desk.fail_afterwards = [lost = false](const Effect& effect) mutable {
      return std::holds_alternative<PublishDecision>(effect) && !std::exchange(lost, true);
    };
  }
  SECTION("with a publication that failed") {
    desk.fail = [failed = false](const Effect& effect) mutable {
      return std::holds_alternative<PublishDecision>(effect) && !std::exchange(failed, true);
    };
  }
  desk.tell(Started{});
  desk.pass(seconds(1));
  CHECK(desk.serving);
  CHECK(desk.registers.at(first).verdict == Verdict::abort);
  CHECK(desk.registers.at(second).verdict == Verdict::abort);
  CHECK(desk.registers.at(second).decided_by == Epoch{3});
  CHECK(desk.removed.size() == 3);
}

TEST_CASE("an attempt that its own coordinator decided meanwhile is left alone", "[coordinator][recovery]") {
  Desk desk;
  const CheckpointId id{Epoch{1}, Attempt{1}, Step{1}};
  desk.catalog.undecided = {id};
  desk.registers[id] = committed(id);
  desk.serve();
  CHECK(desk.registers.at(id).verdict == Verdict::commit);
  CHECK(desk.removed.empty());
}

TEST_CASE("a start that fails says why", "[coordinator][recovery]") {
  Desk desk;
  SECTION("claim") {
    desk.fail = [](const Effect& effect) { return std::holds_alternative<ClaimEpoch>(effect); };
  }
  SECTION("catalog") {
    desk.fail = [](const Effect& effect) { return std::holds_alternative<ReadCatalog>(effect); };
  }
  desk.tell(Started{});
  desk.pass(seconds(4));
  CHECK_FALSE(desk.serving);
  REQUIRE(desk.exited);
  CHECK(contains(desk.exited->error->message, "the disk burns"));
}

TEST_CASE("a newcomer hears whether there are live workers", "[coordinator][takeover]") {
  Desk desk;
  desk.serve();
  desk.join_one(4'000'000, 0);
  CHECK(desk.take<Pulse>().size() == 1);
  desk.join(2);
  desk.save(1, 600);
  desk.join_one(4'000'000, 0);
  const auto error = desk.only<Refused>().error;
  CHECK(error.code == Code::unavailable);
  CHECK(contains(error.message, "coordinator on head serves 2 ranks, last at step 600"));
  desk.say(0, Goodbye{});
  desk.say(1, Goodbye{});
  desk.take<Pulse>();
  desk.join_one(4'000'000, 0);
  CHECK(desk.take<Pulse>().size() == 1);
}

TEST_CASE("stopping: at once when alone", "[coordinator][stop]") {
  Desk desk;
  desk.serve();
  desk.tell(StopAsked{});
  REQUIRE(desk.exited);
  CHECK_FALSE(desk.exited->error);
}

TEST_CASE("stopping: decides what is in flight, takes no new calls, leaves after the goodbyes", "[coordinator][stop]") {
  Desk desk;
  desk.serve();
  desk.join(2);
  desk.call_save(1, 6);
  desk.tell(StopAsked{});
  CHECK_FALSE(desk.exited);
  desk.receipts(1);
  CHECK(desk.take<Committed>().size() == 2);
  desk.call_save(2, 7);
  CHECK(desk.only<Aborted>().error.code == Code::unavailable);
  desk.join_one(0, 1, "new", 300);
  CHECK(desk.only<Refused>().error.code == Code::unavailable);
  desk.say(0, Goodbye{});
  CHECK_FALSE(desk.exited);
  desk.say(1, Goodbye{});
  REQUIRE(desk.exited);
  CHECK_FALSE(desk.exited->error);
}

TEST_CASE("stopping: gives up what is in flight after the grace", "[coordinator][stop]") {
  Desk desk;
  desk.serve();
  desk.join(1);
  desk.call_save(1, 6);
  desk.tell(StopAsked{});
  for (int half_second = 0; half_second < 8; ++half_second) {
    desk.pass(milliseconds(500));
    desk.say(0, Progress{Ordinal{1}, Phase::write, static_cast<std::uint64_t>(half_second)});
  }
  REQUIRE(desk.exited);
  CHECK(desk.registers.begin()->second.verdict == Verdict::abort);
  CHECK(desk.removed.size() == 1);
}

TEST_CASE("heartbeats go to all members that have not left", "[coordinator][join]") {
  Desk desk;
  desk.serve();
  desk.join(3);
  desk.say(1, Goodbye{});
  desk.take<Pulse>();
  desk.pass(milliseconds(500));
  CHECK(desk.take<Pulse>().size() == 2);
  CHECK(Coordinator::pulse(Desk::usual(), 16384) == milliseconds(500));
  auto slow = Desk::usual();
  slow.deadline = seconds(120);
  CHECK(Coordinator::pulse(slow, 4) == seconds(1));
  CHECK(Coordinator::pulse(slow, 16384) == milliseconds(16384));
}

}  // namespace
}  // namespace vckpt::coordinator
