#include "worker/worker_logic.h"

#include <algorithm>
#include <deque>
#include <map>
#include <utility>

#include "worker/call.h"

namespace vckpt {
namespace {

// What a load that did not succeed has left in a section.
struct Poison {
  Ordinal load;
  std::vector<std::string> only;
};

}  // namespace

struct WorkerLogic::State {
  explicit State(WorkerSettings settings) : member(std::move(settings)) {}

  Membership member;
  bool closing = false;
  bool closed = false;
  std::deque<Call> calls;                  // in ordinal order
  std::map<std::string, Poison> poisoned;  // by section
  std::vector<WorkerEffect> effects;
  std::optional<TimePoint> wake_at;

  void emit(WorkerEffect effect) { effects.push_back(std::move(effect)); }

  void send(Message message, const Call* call) {
    const bool attempted = call != nullptr && call->id;
    emit(effect::SendMessage{member.stamp(std::move(message), attempted ? call->id : std::nullopt,
                                          attempted ? call->revision : Revision{})});
  }

  Call* find(Ordinal ordinal) {
    for (auto& call : calls) {
      if (call.ordinal == ordinal) return &call;
    }
    return nullptr;
  }

  // ---- transitions of one call

  void enter(Call& call, Stage stage, TimePoint now) {
    call.stage = stage;
    call.stage_since = now;
    send_request(call, now);
  }

  void send_request(Call& call, TimePoint now) {
    auto request = call.request();
    if (!request) return;
    send(std::move(*request), &call);
    call.next_send = now + member.settings().resend;
  }

  void stop_run(Call& call) {
    if (!call.run_active || call.stop_asked) return;
    call.stop_asked = true;
    emit(effect::StopRun{call.ordinal});
  }

  // What the caller is told of this rank's own failure.
  Error own_failure(const Call& call) const { return call.failure->with_context(member.self() + ": " + call.name()); }

  void fail(Call& call, const Error& error, TimePoint now) {
    call.failure = error;
    stop_run(call);
    enter(call, Stage::failing, now);
  }

  // Ends a call that gets no decision any more: by the one on storage when there can be one.
  void settle(Call& call, const Error& error, TimePoint now) {
    if (call.outcome || call.stage == Stage::checking) return;
    stop_run(call);
    if (!call.failure) call.failure = error;
    if (call.is_save() && call.id) {
      enter(call, Stage::checking, now);
      emit(effect::ReadDecision{call.ordinal, *call.id});
    } else {
      call.outcome = own_failure(call);
    }
  }

  void settle_all(const Error& error, TimePoint now) {
    for (auto& call : calls) settle(call, error, now);
  }

  void release(Call& call, Result<void> staged, TimePoint now) {
    call.is_released = true;
    call.released_at = now;
    emit(effect::SaveReleased{call.ordinal, std::move(staged)});
  }

  void poison(const std::string& section, const Call& call) {
    const auto& only = std::get<LoadWish>(call.wish).options.only;
    const auto [at, made] = poisoned.try_emplace(section, Poison{call.ordinal, only});
    if (!made && at->second.only != only) at->second.only.clear();  // several parts: only a load of all heals
    at->second.load = call.ordinal;
  }

  void heal(const std::string& section, const Call& call) {
    const auto& only = std::get<LoadWish>(call.wish).options.only;
    const auto found = poisoned.find(section);
    if (found != poisoned.end() && (only.empty() || only == found->second.only)) poisoned.erase(found);
  }

  // ---- events

  void on(const event::Started&, TimePoint now) { member.start(now); }
  void on(const event::RunRecordRead& read, TimePoint now) { member.run_record_read(read.record, now); }
  void on(const event::SaveCalled& called, TimePoint now) {
    add_call(called.ordinal, called.wish, SaveWish{called.step, {}, {}}, now);
  }
  void on(const event::LoadCalled& called, TimePoint now) { add_call(called.ordinal, called.wish, LoadWish{}, now); }
  void on(const event::CloseAsked&, TimePoint) { closing = true; }
  void on(const event::TimerFired&, TimePoint) {}

  void on(const event::MessageArrived& arrived, TimePoint now) {
    if (!member.accepts(arrived.message, now)) return;
    std::visit([&](const auto& message) { receive(message, arrived.message.envelope, now); }, arrived.message.message);
  }

  template <typename Wish>
  void add_call(Ordinal ordinal, const Result<Wish>& wish, const Wish& nothing, TimePoint now) {
    Call call;
    call.ordinal = ordinal;
    call.wish = wish ? *wish : nothing;
    call.called_at = call.moved_at = call.stage_since = now;
    if (!wish) call.failure = wish.error();
    if (closing || member.error()) {
      call.outcome = member.error().value_or(invalid("the worker is closed")).with_context(call.name());
    } else if (member.life() != Life::joined) {
      call.outcome = invalid(call.name() + ": the worker has not joined its session yet");
    }
    calls.push_back(std::move(call));
  }

  void on(const event::RunMoved& moved, TimePoint now) {
    Call* call = find(moved.ordinal);
    if (call == nullptr || call->stage != Stage::running) return;
    if (call->phase == moved.phase && call->bytes == moved.bytes) return;
    call->phase = moved.phase;
    call->bytes = moved.bytes;
    call->moved_at = now;
  }

  void on(const event::SaveStaged& staged, TimePoint now) {
    Call* call = find(staged.ordinal);
    if (call != nullptr && !call->is_released && !call->outcome) release(*call, {}, now);
  }

  void on(const event::SaveRunEnded& ended, TimePoint now) {
    Call* call = end_run(ended.ordinal);
    if (call == nullptr) return;
    if (!ended.files) return fail(*call, ended.files.error(), now);
    call->receipt =
        Receipt{call->ordinal, call->save_slice->plan, *ended.files, *call->wanted_items(), ended.staging_peak_bytes};
    call->phase = Phase::decide;
    enter(*call, Stage::reporting, now);
  }

  void on(const event::LoadRunEnded& ended, TimePoint now) {
    Call* call = end_run(ended.ordinal);
    if (call == nullptr) return;
    if (!ended.receipt) return fail(*call, ended.receipt.error(), now);
    call->receipt = *ended.receipt;
    call->phase = Phase::decide;
    enter(*call, Stage::reporting, now);
  }

  // The call whose run has ended, when that still matters.
  Call* end_run(Ordinal ordinal) {
    Call* call = find(ordinal);
    if (call == nullptr) return nullptr;
    call->run_active = false;
    return call->outcome || call->stage != Stage::running ? nullptr : call;
  }

  void on(const event::DecisionRead& read, TimePoint) {
    Call* call = find(read.ordinal);
    if (call == nullptr || call->outcome || call->stage != Stage::checking) return;
    if (!read.decision) {
      Error error = own_failure(*call);
      if (read.decision.error().code != Code::not_found) {
        error.message += "; its decision cannot be read: " + read.decision.error().message;
      }
      call->outcome = std::move(error);
    } else if (read.decision->verdict == Verdict::commit) {
      Report report;
      report.ranks = member.settings().world_size;
      for (const auto& section : read.decision->sections) report.unique_bytes += section.data_bytes;
      report.bytes_written = report.unique_bytes;
      call->outcome = report;
    } else {
      call->outcome = aborted(call->name() + " was given up: " + read.decision->reason);
    }
  }

  void on(const event::LeaveAsked&, TimePoint) {
    if (member.life() == Life::joined) send(Goodbye{}, nullptr);
    closing = true;
    const Error error = aborted(member.self() + " left");
    for (auto& call : calls) {
      stop_run(call);
      if (!call.outcome) call.outcome = error.with_context(call.name());
    }
    member.leave(error);
  }

  // ---- messages

  template <typename Other>
  void receive(const Other&, const Envelope&, TimePoint) {
    member.drop();  // a message that only workers send
  }

  void receive(const Pulse&, const Envelope&, TimePoint) {}

  void receive(const Joined& message, const Envelope& envelope, TimePoint now) {
    if (member.life() != Life::joining) return;
    member.joined(message, envelope, now);
    emit(effect::Connected{message});
  }

  void receive(const Refused& refused, const Envelope&, TimePoint now) {
    const Error error = refused.error.with_context(member.self());
    const bool joining = member.life() == Life::joining;
    member.leave(error);
    if (joining) return emit(effect::Connected{error});
    settle_all(error, now);
  }

  void receive(const NeedBodies& need, const Envelope&, TimePoint) {
    const Call* call = find(need.ordinal);
    if (call == nullptr || call->stage == Stage::queued) return;
    Bodies bodies;
    for (const auto& digest : need.digests) {
      if (auto body = call->body(digest)) bodies.bodies.push_back(std::move(*body));
    }
    send(std::move(bodies), call);
  }

  // The call that waits for a slice; nothing when it has one already, or is over.
  Call* asking(Ordinal ordinal, const CheckpointId& id, const Envelope& envelope, Phase phase, TimePoint now) {
    Call* call = find(ordinal);
    if (call == nullptr || call->stage != Stage::asking || call->outcome) return nullptr;
    if (call->is_save() != (phase == Phase::copy)) return nullptr;
    call->id = id;
    call->revision = envelope.revision;
    call->phase = phase;
    call->moved_at = now;
    call->run_started_at = now;
    return call;
  }

  void receive(const SaveSlice& slice, const Envelope& envelope, TimePoint now) {
    Call* call = asking(slice.ordinal, slice.id, envelope, Phase::copy, now);
    if (call == nullptr) return;
    call->save_slice = std::make_shared<const SaveSlice>(slice);
    emit(effect::SaveKnown{call->ordinal, slice.id});
    if (const auto items = call->wanted_items(); !items) return fail(*call, items.error(), now);
    call->run_active = true;
    enter(*call, Stage::running, now);
    emit(effect::StartSave{call->ordinal, call->save_slice, std::get<SaveWish>(call->wish).options.over_budget});
  }

  void receive(const LoadSlice& slice, const Envelope& envelope, TimePoint now) {
    Call* call = asking(slice.ordinal, slice.id, envelope, Phase::read, now);
    if (call == nullptr) return;
    call->load_slice = std::make_shared<const LoadSlice>(slice);
    for (const auto& section : call->content().sections) poison(section.name, *call);
    call->run_active = true;
    enter(*call, Stage::running, now);
    emit(effect::StartLoad{call->ordinal, call->load_slice});
  }

  void receive(const Committed& committed, const Envelope&, TimePoint) {
    Call* call = find(committed.ordinal);
    if (call == nullptr || !call->is_save() || call->outcome || call->stage != Stage::reporting) return;
    call->outcome = committed.report;
  }

  void receive(const Loaded& loaded, const Envelope&, TimePoint) {
    Call* call = find(loaded.ordinal);
    if (call == nullptr || call->is_save() || call->outcome) return;
    const bool nothing = call->stage == Stage::asking && !loaded.id;
    if (nothing || call->stage == Stage::reporting) call->outcome = loaded.report;
  }

  void receive(const Aborted& message, const Envelope&, TimePoint) {
    Call* call = find(message.ordinal);
    if (call == nullptr || call->outcome) return;
    stop_run(*call);
    // The first failure of the job counts; what went wrong here as well may only follow from it.
    const bool ours = call->failure && message.error.message.find(call->failure->message) != std::string::npos;
    call->outcome = ours ? own_failure(*call) : message.error.with_context(call->name());
  }

  // ---- after every event

  void check_call(Call& call, TimePoint now) {
    if (call.outcome) return;
    const Duration deadline = member.deadline();
    if (call.stage == Stage::failing && now - call.stage_since >= deadline) return settle(call, *call.failure, now);
    if (call.stage == Stage::checking && now - call.stage_since >= deadline) {
      call.outcome = own_failure(call);
    } else if (call.stage == Stage::running && now - call.moved_at >= deadline) {
      fail(call,
           unavailable("phase " + std::string(to_string(call.phase)) + ": nothing moved for " + in_seconds(deadline) +
                       " at " + std::to_string(call.bytes) + " bytes"),
           now);
    } else if (member.life() == Life::joined && now >= call.next_send) {
      send_request(call, now);
    }
  }

  void start_calls(TimePoint now) {
    std::size_t saves = 0;
    bool loading = false;
    for (auto& call : calls) {
      if (call.stage == Stage::queued) {
        if (call.outcome) continue;
        const bool turn = !loading && (call.is_save() ? saves < saves_in_flight_max : saves == 0);
        if (!turn || member.life() != Life::joined) return;
        start(call, now);
      }
      saves += call.is_save() ? 1 : 0;
      loading = loading || !call.is_save();
    }
  }

  void start(Call& call, TimePoint now) {
    for (const auto& section : call.content().sections) {
      const auto found = poisoned.find(section.name);
      if (call.failure || !call.is_save() || found == poisoned.end()) continue;
      call.failure =
          invalid("section '" + section.name + "' holds a mixture since call " +
                  std::to_string(found->second.load.value) + ", a load that failed: load it again before saving it");
    }
    if (call.failure) return fail(call, Error(*call.failure), now);
    enter(call, Stage::asking, now);
  }

  void end_calls(TimePoint now) {
    for (auto call = calls.begin(); call != calls.end();) {
      if (!call->outcome || call->run_active) {
        ++call;
        continue;
      }
      end(*call, now);
      call = calls.erase(call);
    }
    if (!closing || closed || !calls.empty()) return;
    if (member.life() == Life::joined) send(Goodbye{}, nullptr);
    if (!member.error()) member.leave(invalid("the worker is closed"));
    closed = true;
    emit(effect::Closed{});
  }

  void end(Call& call, TimePoint now) {
    auto& outcome = *call.outcome;
    if (call.is_save()) {
      if (!call.is_released) release(call, outcome ? Result<void>{} : Result<void>{outcome.error()}, now);
      if (outcome) call.complete(*outcome, now);
      return emit(effect::SaveEnded{call.ordinal, outcome});
    }
    if (!outcome) return emit(effect::LoadEnded{call.ordinal, outcome.error()});
    call.complete(*outcome, now);
    LoadEnd ended;
    ended.report = *outcome;
    if (const auto& slice = call.load_slice) {
      ended.id = slice->id;
      ended.missing = slice->missing;
      ended.unexpected = slice->unexpected;
      ended.items = slice->items;
      ended.meta = slice->meta;
      for (const auto& section : call.content().sections) heal(section.name, call);
    }
    emit(effect::LoadEnded{call.ordinal, std::move(ended)});
  }

  void send_progress() {
    bool busy = false;
    for (const auto& call : calls) {
      if (call.stage == Stage::queued || call.outcome) continue;
      busy = true;
      send(Progress{call.ordinal, call.phase, call.bytes}, &call);
    }
    if (!busy) send(Progress{}, nullptr);
  }

  std::optional<TimePoint> next_wake() const {
    std::optional<TimePoint> next = member.next_wake();
    const auto at = [&](TimePoint when) { next = next ? std::min(*next, when) : when; };
    for (const auto& call : calls) {
      if (call.outcome) continue;
      if (call.stage == Stage::failing || call.stage == Stage::checking) at(call.stage_since + member.deadline());
      if (call.stage == Stage::running) at(call.moved_at + member.deadline());
      if (member.life() == Life::joined && call.request()) at(call.next_send);
    }
    return next;
  }

  void pump(TimePoint now) {
    const bool was_joined = member.life() == Life::joined;
    for (auto& effect : member.tick(now)) emit(std::move(effect));
    if (was_joined && member.life() == Life::lost) settle_all(*member.error(), now);
    if (member.take_pulse()) send_progress();
    for (auto& call : calls) check_call(call, now);
    end_calls(now);
    start_calls(now);
    const auto next = next_wake();
    if (next && next != wake_at) emit(effect::WakeAt{*next});
    wake_at = next;
  }
};

WorkerLogic::WorkerLogic(WorkerSettings settings) : state_(std::make_unique<State>(std::move(settings))) {}

WorkerLogic::~WorkerLogic() = default;

std::vector<WorkerEffect> WorkerLogic::on(const WorkerEvent& event, TimePoint now) {
  std::visit([&](const auto& happened) { state_->on(happened, now); }, event);
  state_->pump(now);
  return std::exchange(state_->effects, {});
}

std::uint64_t WorkerLogic::dropped_messages() const { return state_->member.dropped(); }

}  // namespace vckpt
