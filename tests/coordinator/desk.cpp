#include "tests/coordinator/desk.h"

#include <algorithm>

#include "schema/checked.h"
#include "schema/digest.h"

namespace vckpt::coordinator {

void Desk::tell(const Event& event) {
  for (auto& effect : coordinator.on(event, now)) todo.push_back(std::move(effect));
  run_effects();
}

void Desk::run_effects() {
  for (int steps = 0; !todo.empty(); ++steps) {
    REQUIRE(steps < 100'000);
    auto effect = std::move(todo.front());
    todo.erase(todo.begin());
    if (hold && hold(effect)) {
      held.push_back(std::move(effect));
      continue;
    }
    perform(effect, fail && fail(effect));
  }
}

void Desk::answer(const Effect& effect) {
  perform(effect, fail && fail(effect));
  run_effects();
}

void Desk::perform(const Effect& effect, bool failing) {
  const auto error = unavailable("the disk burns");
  std::vector<Effect> next;
  auto reply = [&](const Event& event) { next = coordinator.on(event, now); };
  if (std::holds_alternative<ClaimEpoch>(effect)) {
    if (failing) {
      reply(ClaimFailed{error});
    } else {
      reply(EpochClaimed{{"test", run}, {epoch, Nonce{77}, "head", "tcp://127.0.0.1:1", "", 0}});
    }
  } else if (const auto* read = std::get_if<ReadCatalog>(&effect)) {
    auto now_there = std::make_shared<Catalog>(catalog);
    for (const auto& [id, decision] : registers) now_there->decisions.push_back(decision);
    if (failing) {
      reply(CatalogRead{read->ticket, error});
    } else {
      reply(CatalogRead{read->ticket, std::shared_ptr<const Catalog>(now_there)});
    }
  } else if (const auto* probe = std::get_if<ProbeEpoch>(&effect)) {
    reply(EpochProbed{probe->ticket, failing ? Result<Epoch>(error) : Result<Epoch>(highest)});
  } else if (const auto* planner = std::get_if<RunSavePlanner>(&effect)) {
    ++planned;
    reply(SavePlanned{planner->ticket, failing ? Result<EncodedPlan>(error) : Result<EncodedPlan>(plan()), seconds(1)});
  } else if (const auto* publish = std::get_if<PublishPlan>(&effect)) {
    reply(PlanDurable{publish->ticket, failing ? Result<void>(error) : Result<void>()});
  } else if (const auto* create = std::get_if<CreateAttempt>(&effect)) {
    folders = create->folders;
    reply(AttemptCreated{create->ticket, failing ? Result<void>(error) : Result<void>()});
  } else if (const auto* segments = std::get_if<PublishSegments>(&effect)) {
    using Segments = std::vector<SegmentReference>;
    reply(SegmentsDurable{segments->ticket,
                          failing ? Result<Segments>(error) : Result<Segments>(Segments{{some_digest(9), 1}})});
  } else if (const auto* decide = std::get_if<PublishDecision>(&effect)) {
    if (failing) {
      reply(DecisionUnknown{decide->ticket, error});
    } else if (registers.try_emplace(decide->decision.id, decide->decision).first->second != decide->decision) {
      reply(DecisionTaken{decide->ticket});
    } else if (fail_afterwards && fail_afterwards(effect)) {
      reply(DecisionUnknown{decide->ticket, error});
    } else {
      reply(DecisionDurable{decide->ticket});
    }
  } else if (const auto* remove = std::get_if<RemoveData>(&effect)) {
    if (!failing) removed.push_back(remove->id);
    reply(DataRemoved{remove->ticket, failing ? Result<void>(error) : Result<void>()});
  } else if (const auto* checkpoint = std::get_if<ReadCheckpoint>(&effect)) {
    CheckpointMetadata metadata{checkpoint->decision, plan().planned.plan, std::make_shared<const Manifest>()};
    reply(CheckpointRead{checkpoint->ticket,
                         failing ? Result<CheckpointMetadata>(error) : Result<CheckpointMetadata>(metadata)});
  } else if (const auto* load = std::get_if<RunLoadPlanner>(&effect)) {
    auto planned_load = std::make_shared<PlannedLoad>();
    planned_load->slices.resize(world);
    planned_load->wanted_unique_bytes = 50;
    using Planned = std::shared_ptr<const PlannedLoad>;
    reply(LoadPlanned{load->ticket, failing ? Result<Planned>(error) : Result<Planned>(Planned(planned_load)),
                      seconds(1)});
  } else if (const auto* send = std::get_if<coordinator::Send>(&effect)) {
    if (const auto* slice = std::get_if<SaveSlice>(&send->message.message)) ids[slice->ordinal.value] = slice->id;
    sent.push_back({send->peer, send->message.envelope, send->message.message});
  } else if (const auto* drop = std::get_if<DropPeer>(&effect)) {
    dropped.push_back(drop->peer);
  } else if (const auto* exit = std::get_if<Exit>(&effect)) {
    exited = *exit;
  } else if (const auto* log = std::get_if<Log>(&effect)) {
    lines.push_back(log->line);
  } else if (std::holds_alternative<Serve>(effect)) {
    serving = true;
  }
  todo.insert(todo.end(), next.begin(), next.end());
}

void Desk::pass(Duration duration) {
  const auto end = now + duration;
  while (now < end && !exited) {
    now = std::min(now + milliseconds(500), end);
    tell(TimerFired{});
  }
}

void Desk::serve() {
  tell(Started{});
  REQUIRE(serving);
}

void Desk::join_one(std::uint32_t rank, std::uint32_t ranks, const std::string& name, std::uint64_t incarnation_base) {
  Envelope joining;
  joining.run = run;
  joining.rank = Rank{rank};
  joining.incarnation = Incarnation{incarnation_base + rank};
  Join join;
  join.session_name = name;
  join.world_size = ranks;
  join.host = "node-" + std::to_string(rank);
  join.transport_address = "peer:" + std::to_string(rank);
  tell(Received{"w" + std::to_string(incarnation_base + rank), joining, join});
}

std::vector<Session> Desk::join(std::uint32_t ranks, const std::string& name, std::uint64_t incarnation_base) {
  for (std::uint32_t rank = 0; rank < ranks; ++rank) join_one(rank, ranks, name, incarnation_base);
  world = ranks;
  incarnations = incarnation_base;
  std::vector<Session> joined;
  for (const auto& one : take<Joined>()) joined.push_back(std::get<Joined>(one.message).session);
  return joined;
}

Envelope Desk::envelope(std::uint32_t rank) const {
  Envelope envelope;
  envelope.run = run;
  envelope.epoch = epoch;
  envelope.session = Session{1};
  envelope.rank = Rank{rank};
  envelope.incarnation = Incarnation{incarnations + rank};
  return envelope;
}

void Desk::say(std::uint32_t rank, Message message, Attempt attempt) {
  auto of = envelope(rank);
  of.attempt = attempt;
  tell(Received{"w" + std::to_string(incarnations + rank), of, std::move(message)});
}

SaveCall Desk::save_call(std::uint64_t ordinal, std::uint64_t step) const {
  SaveCall call;
  call.ordinal = Ordinal{ordinal};
  call.step = Step{step};
  call.sections = {{"model", some_digest(1), {0}}};
  return call;
}

void Desk::give_bodies(std::uint32_t rank) {
  tell(LayoutBodyReceived{"w" + std::to_string(incarnations + rank), envelope(rank), some_digest(1),
                          std::make_shared<const LayoutBody>()});
}

void Desk::call_save(std::uint64_t ordinal, std::uint64_t step) {
  for (std::uint32_t rank = 0; rank < world; ++rank) say(rank, save_call(ordinal, step));
  for (const auto& need : take<NeedBodies>()) give_bodies(need.envelope.rank.value);
}

EncodedPlan Desk::plan() const {
  auto made = std::make_shared<SavePlan>();
  SectionPlan section;
  section.section = "model";
  section.tensors = {{"w", DType::u8, {world * bytes_per_rank}}};
  for (std::uint32_t rank = 0; rank < world; ++rank) {
    section.ranks.push_back({no_body, {}, {{0, Box{{rank * bytes_per_rank}, {bytes_per_rank}}}}});
  }
  made->sections.push_back(section);
  Balance balance;
  balance.unique_bytes = world * bytes_per_rank;
  balance.most_loaded_bytes = bytes_per_rank;
  balance.mean_bytes = balance.bound_bytes = bytes_per_rank;
  return {{made, balance}, some_digest(5), std::make_shared<const Bytes>()};
}

Receipt Desk::receipt(std::uint32_t rank, std::uint64_t ordinal) const {
  Receipt receipt;
  receipt.ordinal = Ordinal{ordinal};
  receipt.plan = some_digest(5);
  FileRecord file;
  file.section = "model";
  file.rank = Rank{rank};
  file.header_bytes = 4096;
  file.data_bytes = bytes_per_rank;
  file.chunk_digests = {7};
  receipt.files = {file};
  receipt.staging_peak_bytes = 10 + rank;
  return receipt;
}

void Desk::send_receipt(std::uint32_t rank, std::uint64_t ordinal) {
  say(rank, receipt(rank, ordinal), ids.contains(ordinal) ? ids.at(ordinal).attempt : Attempt{});
}

void Desk::receipts(std::uint64_t ordinal) {
  for (std::uint32_t rank = 0; rank < world; ++rank) send_receipt(rank, ordinal);
}

void Desk::save(std::uint64_t ordinal, std::uint64_t step) {
  call_save(ordinal, step);
  receipts(ordinal);
}

LoadCall Desk::load_call(std::uint64_t ordinal, Selector selector) const {
  LoadCall call;
  call.ordinal = Ordinal{ordinal};
  call.selector = std::move(selector);
  call.sections = {{"model", some_digest(1), {0}}};
  return call;
}

bool Desk::logged(const std::string& part) const {
  return std::any_of(lines.begin(), lines.end(),
                     [&](const std::string& line) { return line.find(part) != std::string::npos; });
}

}  // namespace vckpt::coordinator
