// A load, event by event.
#include "tests/coordinator/desk.h"

namespace vckpt::coordinator {
namespace {

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

struct Job : Desk {
  explicit Job(std::uint32_t ranks = 2) {
    serve();
    REQUIRE(join(ranks).size() == ranks);
  }
  void call_load(std::uint64_t ordinal, const Selector& selector) {
    for (std::uint32_t rank = 0; rank < world; ++rank) say(rank, load_call(ordinal, selector));
    for (const auto& need : take<NeedBodies>()) give_bodies(need.envelope.rank.value);
  }
  void load_receipts(std::uint64_t ordinal) {
    for (std::uint32_t rank = 0; rank < world; ++rank) say(rank, LoadReceipt{Ordinal{ordinal}, 10, 20, 5, 30 + rank});
  }
};

TEST_CASE("the newest of nothing is nothing, for all ranks", "[coordinator][load]") {
  Job job;
  job.call_load(1, newest);
  CHECK(job.take<Loaded>().size() == 2);
  job.say(1, job.load_call(1, newest));
  CHECK_FALSE(job.only<Loaded>().id);
}

TEST_CASE("a selector that means nothing is not_found on all ranks", "[coordinator][load]") {
  Job job;
  job.call_load(1, Step{7});
  const auto error = job.only<Aborted>().error;
  CHECK(error.code == Code::not_found);
  CHECK(contains(error.message, "/root-of-test"));
  CHECK(contains(error.message, "step 7"));
}

TEST_CASE("a load sends slices, adds up receipts, and repeats its result", "[coordinator][load]") {
  Job job;
  job.save(1, 6);
  job.call_load(2, newest);
  const auto slices = job.take<LoadSlice>();
  REQUIRE(slices.size() == 2);
  CHECK(std::get<LoadSlice>(slices[0].message).id == job.ids[1]);
  CHECK(std::get<LoadSlice>(slices[0].message).ordinal == Ordinal{2});
  job.say(1, job.load_call(2, newest));
  CHECK(job.take<LoadSlice>().size() == 1);
  job.load_receipts(2);
  const auto report = job.only<Loaded>().report;
  CHECK(report.storage_bytes_read == 20);
  CHECK(report.bytes_needed == 40);
  CHECK(report.bytes_received == 10);
  CHECK(report.staging_peak_bytes == 31);
  CHECK(report.ranks == 2);
  job.load_receipts(2);
  CHECK(job.take<Loaded>().size() == 2);
}

TEST_CASE("ranks that load different things are invalid", "[coordinator][load]") {
  Job job;
  job.say(0, job.load_call(1, newest));
  job.say(1, job.load_call(1, Step{3}));
  const auto error = job.only<Aborted>().error;
  CHECK(error.code == Code::invalid);
  CHECK(contains(error.message, "rank 0 (node-0) has the newest, rank 1 (node-1) has step 3"));
}

TEST_CASE("one failure ends a load for all, and it does not move the line", "[coordinator][load]") {
  Job job;
  job.save(1, 6);
  job.save(2, 7);
  job.call_load(3, Step{6});
  job.say(0, LoadReceipt{Ordinal{3}, 0, 0, 0, 0});
  job.say(1, Failed{Ordinal{3}, Phase::read, corrupt("chunk 3")});
  const auto error = job.only<Aborted>().error;
  CHECK(error.code == Code::corrupt);
  CHECK(contains(error.message, "rank 1 (node-1) failed in phase read: chunk 3"));
  job.save(4, 8);
  CHECK(job.registers.rbegin()->second.parent->step == Step{7});
}

TEST_CASE("a load waits for the saves before it, and saves after it wait for the load", "[coordinator][load]") {
  Job job;
  job.call_save(1, 6);
  job.call_load(2, newest);
  job.call_save(3, 7);
  CHECK(job.take<LoadSlice>().empty());
  CHECK(job.take<SaveSlice>().size() == 2);
  job.receipts(1);
  CHECK(job.take<LoadSlice>().size() == 2);
  CHECK(job.take<SaveSlice>().empty());
  job.load_receipts(2);
  CHECK(job.take<SaveSlice>().size() == 2);
}

TEST_CASE("a rank that stalls or goes away during a load ends it", "[coordinator][load]") {
  Job job;
  job.save(1, 6);
  job.call_load(2, newest);
  SECTION("leaves") {
    job.say(1, Goodbye{});
    CHECK(contains(job.only<Aborted>().error.message, "rank 1 (node-1) has left"));
  }
  SECTION("stalls") {
    for (int half_second = 0; half_second < 6; ++half_second) {
      job.pass(milliseconds(500));
      job.say(0, Progress{Ordinal{2}, Phase::read, static_cast<std::uint64_t>(half_second)});
      job.say(1, Progress{Ordinal{2}, Phase::exchange, 4});
    }
    CHECK(contains(job.only<Aborted>().error.message, "rank 1 (node-1) has not moved"));
  }
  SECTION("is silent") {
    job.pass(seconds(3));
    CHECK(contains(job.only<Aborted>().error.message, "is lost"));
  }
}

TEST_CASE("a superseded coordinator loads nothing", "[coordinator][load]") {
  Job job;
  job.save(1, 6);
  job.highest = Epoch{9};
  job.call_load(2, newest);
  REQUIRE(job.exited);
  CHECK(job.exited->error->code == Code::aborted);
  CHECK(job.take<LoadSlice>().empty());
  CHECK(job.take<Aborted>().size() == 2);
}

TEST_CASE("storage that fails is asked again, and a plan that fails is told", "[coordinator][load]") {
  Job job;
  job.save(1, 6);
  const int which = GENERATE(0, 1, 2, 3);
  bool failed = false;
  job.fail = [&](const Effect& effect) {
    const bool wanted = (which == 0 && std::holds_alternative<ProbeEpoch>(effect)) ||
                        (which == 1 && std::holds_alternative<ReadCatalog>(effect)) ||
                        (which == 2 && std::holds_alternative<ReadCheckpoint>(effect)) ||
                        (which == 3 && std::holds_alternative<RunLoadPlanner>(effect));
    return wanted && !std::exchange(failed, true);
  };
  job.call_load(2, newest);
  CHECK(failed);
  job.pass(milliseconds(500));
  CHECK(job.take<LoadSlice>().size() == (which == 3 ? 0 : 2));
  CHECK(job.take<Aborted>().size() == (which == 3 ? 2 : 0));
}

}  // namespace
}  // namespace vckpt::coordinator
