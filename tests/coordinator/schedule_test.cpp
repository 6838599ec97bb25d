// Random schedules: messages lost and doubled, ranks that fail or fall silent, storage that errs and answers late and
// out of order. Whatever happens, every call ends, Committed is said only after the register says COMMIT and the epoch
// was found highest, and the commits make one line in the order of the calls.
#include <random>
#include <set>

#include "tests/coordinator/desk.h"

namespace vckpt::coordinator {
namespace {

class Schedule {
 public:
  Schedule(std::uint64_t seed, std::uint32_t ranks)
      : random_(seed), settings_(Desk::usual()), coordinator_(settings_), ranks_(ranks), results_(ranks) {}

  void run() {
    tell(Started{});
    for (int step = 0; step < 4000 && !exited_ && !finished(); ++step) {
      if (!pending_.empty() && chance(70)) {
        answer();
      } else if (chance(60)) {
        speak();
      } else {
        now_ += milliseconds(100);
        if (now_ >= timer_) tell(TimerFired{});
      }
      check();
    }
    CHECK((exited_ || finished()));
  }

  std::size_t commits() const { return registers_commits(); }
  bool exited() const { return exited_; }

 private:
  static constexpr std::uint64_t calls = 4;

  bool chance(int percent) { return static_cast<int>(random_() % 100) < percent; }

  bool finished() const {
    for (const auto& results : results_) {
      if (results.size() < calls) return false;
    }
    return true;
  }

  std::size_t registers_commits() const {
    return static_cast<std::size_t>(std::count_if(registers_.begin(), registers_.end(), [](const auto& entry) {
      return entry.second.verdict == Verdict::commit;
    }));
  }

  void tell(const Event& event) {
    for (auto& effect : coordinator_.on(event, now_)) {
      if (auto* send = std::get_if<coordinator::Send>(&effect)) {
        if (std::holds_alternative<Committed>(send->message.message)) judge(event, send->message);
        deliver(send->message);
      } else if (const auto* arm = std::get_if<ArmTimer>(&effect)) {
        timer_ = arm->when;
      } else if (std::holds_alternative<Exit>(effect)) {
        exited_ = true;
      } else if (!std::holds_alternative<Log>(effect) && !std::holds_alternative<DropPeer>(effect)) {
        pending_.push_back(std::move(effect));
      }
    }
  }

  // The first Committed of a checkpoint is said while the probe after its durable decision is handled; later ones
  // repeat it.
  void judge(const Event& event, const EnvelopedMessage& message) {
    const auto& id = std::get<Committed>(message.message).id;
    REQUIRE(registers_.contains(id));
    REQUIRE(registers_.at(id).verdict == Verdict::commit);
    if (std::holds_alternative<EpochProbed>(event)) {
      REQUIRE(durable_.contains(id));
      said_.insert(id);
    } else {
      REQUIRE(std::holds_alternative<Received>(event));
      REQUIRE(said_.contains(id));
    }
  }

  void deliver(const EnvelopedMessage& message) {
    if (chance(15)) return;  // lost
    const auto rank = message.envelope.rank.value;
    if (const auto* joined = std::get_if<Joined>(&message.message)) session_ = joined->session;
    if (const auto* need = std::get_if<NeedBodies>(&message.message); need != nullptr) wanted_ = true;
    if (const auto* slice = std::get_if<SaveSlice>(&message.message)) slices_[{rank, slice->ordinal.value}] = *slice;
    if (const auto* committed = std::get_if<Committed>(&message.message)) note(rank, committed->ordinal, true);
    if (const auto* aborted = std::get_if<Aborted>(&message.message)) note(rank, aborted->ordinal, false);
  }

  void note(std::uint32_t rank, Ordinal ordinal, bool committed) {
    const auto [known, added] = results_[rank].try_emplace(ordinal.value, committed);
    REQUIRE(known->second == committed);  // never one and then the other
  }

  void say(std::uint32_t rank, Message message, Attempt attempt = {}) {
    Envelope envelope;
    envelope.run = Nonce{11};
    envelope.rank = Rank{rank};
    envelope.incarnation = Incarnation{100 + rank};
    if (!std::holds_alternative<Join>(message)) {
      envelope.epoch = Epoch{3};
      envelope.session = session_;
    }
    envelope.attempt = attempt;
    for (int times = chance(10) ? 2 : 1; times > 0; --times) {
      if (!chance(15)) tell(Received{"w" + std::to_string(rank), envelope, message});
    }
  }

  // One rank does the next thing that it has to do.
  void speak() {
    const auto rank = static_cast<std::uint32_t>(random_() % ranks_);
    if (session_ == Session{}) {
      Join join;
      join.world_size = ranks_;
      return say(rank, join);
    }
    say(rank, Progress{Ordinal{1}, Phase::write, ++moved_});
    if (wanted_ && chance(50)) {
      Envelope envelope;
      envelope.run = Nonce{11};
      envelope.epoch = Epoch{3};
      envelope.session = session_;
      envelope.rank = Rank{rank};
      envelope.incarnation = Incarnation{100 + rank};
      tell(LayoutBodyReceived{"w", envelope, some_digest(1), std::make_shared<const LayoutBody>()});
    }
    // Two saves in flight.
    for (std::uint64_t ordinal = 1, open = 0; ordinal <= calls && open < 2; ++ordinal) {
      if (results_[rank].contains(ordinal)) continue;
      ++open;
      const auto slice = slices_.find({rank, ordinal});
      if (slice == slices_.end()) {
        SaveCall call;
        call.ordinal = Ordinal{ordinal};
        call.step = Step{ordinal * 10};
        call.sections = {{"model", some_digest(1), {rank}}};
        say(rank, call);
      } else if (failing_.contains({rank, ordinal}) || chance(2)) {
        failing_.insert({rank, ordinal});
        say(rank, Failed{Ordinal{ordinal}, Phase::write, exhausted("full")}, slice->second.id.attempt);
      } else {
        say(rank, receipt(rank, slice->second), slice->second.id.attempt);
      }
    }
  }

  static Receipt receipt(std::uint32_t rank, const SaveSlice& slice) {
    Receipt receipt;
    receipt.ordinal = slice.ordinal;
    receipt.plan = slice.plan;
    FileRecord file;
    file.section = "model";
    file.rank = Rank{rank};
    file.header_bytes = 4096;
    file.data_bytes = 10;
    file.chunk_digests = {7};
    receipt.files = {file};
    return receipt;
  }

  EncodedPlan plan() const {
    auto made = std::make_shared<SavePlan>();
    SectionPlan section;
    section.section = "model";
    section.tensors = {{"w", DType::u8, {ranks_ * std::uint64_t{10}}}};
    for (std::uint32_t rank = 0; rank < ranks_; ++rank) {
      section.ranks.push_back({no_body, {}, {{0, Box{{rank * std::uint64_t{10}}, {10}}}}});
    }
    made->sections.push_back(section);
    return {{made, {}}, some_digest(5), std::make_shared<const Bytes>()};
  }

  // Answers one of the effects, any of them, sometimes with an error.
  void answer() {
    const auto chosen = random_() % pending_.size();
    const auto effect = pending_[chosen];
    pending_.erase(pending_.begin() + static_cast<std::ptrdiff_t>(chosen));
    const bool failing = chance(8);
    const auto error = unavailable("by chance");
    using Segments = std::vector<SegmentReference>;
    if (std::holds_alternative<ClaimEpoch>(effect)) {
      tell(EpochClaimed{{"test", Nonce{11}}, {Epoch{3}, Nonce{77}, "head", "", "", 0}});
    } else if (const auto* read = std::get_if<ReadCatalog>(&effect)) {
      tell(CatalogRead{read->ticket, std::make_shared<const Catalog>()});
    } else if (const auto* probe = std::get_if<ProbeEpoch>(&effect)) {
      tell(EpochProbed{probe->ticket, failing ? Result<Epoch>(error) : Result<Epoch>(Epoch{3})});
    } else if (const auto* planner = std::get_if<RunSavePlanner>(&effect)) {
      tell(
          SavePlanned{planner->ticket, failing ? Result<EncodedPlan>(error) : Result<EncodedPlan>(plan()), seconds(0)});
    } else if (const auto* publish = std::get_if<PublishPlan>(&effect)) {
      tell(PlanDurable{publish->ticket, failing ? Result<void>(error) : Result<void>()});
    } else if (const auto* create = std::get_if<CreateAttempt>(&effect)) {
      tell(AttemptCreated{create->ticket, failing ? Result<void>(error) : Result<void>()});
    } else if (const auto* segments = std::get_if<PublishSegments>(&effect)) {
      tell(SegmentsDurable{segments->ticket, failing ? Result<Segments>(error) : Result<Segments>(Segments{{}})});
    } else if (const auto* decide = std::get_if<PublishDecision>(&effect)) {
      decided(*decide, failing);
    } else if (const auto* remove = std::get_if<RemoveData>(&effect)) {
      if (!failing) removed_.insert(remove->id);
      tell(DataRemoved{remove->ticket, failing ? Result<void>(error) : Result<void>()});
    }
  }

  void decided(const PublishDecision& effect, bool failing) {
    const bool happens = !failing || chance(50);
    if (happens) {
      const auto& standing = registers_.try_emplace(effect.decision.id, effect.decision).first->second;
      REQUIRE(standing == effect.decision);  // nobody else decides here
    }
    if (failing) return tell(DecisionUnknown{effect.ticket, unavailable("lost")});
    durable_.insert(effect.decision.id);
    tell(DecisionDurable{effect.ticket});
  }

  void check() const {
    std::optional<CheckpointId> line;
    for (const auto& [id, decision] : registers_) {
      if (decision.verdict != Verdict::commit) continue;
      REQUIRE(decision.parent == line);
      line = id;
      REQUIRE_FALSE(removed_.contains(id));
    }
    for (const auto& id : removed_) REQUIRE(registers_.at(id).verdict == Verdict::abort);
  }

  std::mt19937_64 random_;
  Settings settings_;
  Coordinator coordinator_;
  std::uint32_t ranks_;
  TimePoint now_{seconds(5)};
  TimePoint timer_{};
  std::vector<Effect> pending_;
  std::map<CheckpointId, Decision> registers_;
  std::set<CheckpointId> durable_;
  std::set<CheckpointId> said_;
  std::set<CheckpointId> removed_;
  Session session_;
  bool wanted_ = false;
  bool exited_ = false;
  std::uint64_t moved_ = 0;
  std::map<std::pair<std::uint32_t, std::uint64_t>, SaveSlice> slices_;
  std::set<std::pair<std::uint32_t, std::uint64_t>> failing_;
  std::vector<std::map<std::uint64_t, bool>> results_;  // by rank: ordinal -> committed
};

TEST_CASE("random schedules end, and what is said to be committed is", "[coordinator][property]") {
  std::size_t commits = 0;
  std::size_t exits = 0;
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    INFO("seed " << seed);
    Schedule schedule(seed, 1 + seed % 4);
    schedule.run();
    commits += schedule.commits();
    exits += schedule.exited() ? 1 : 0;
  }
  CHECK(commits > 300);  // the faults leave something to commit
  CHECK(exits < 30);     // and seldom end the coordinator
}

}  // namespace
}  // namespace vckpt::coordinator
