#include "worker/worker_actor.h"

#include <algorithm>
#include <utility>

#include "schema/digest.h"
#include "schema/names.h"

namespace vckpt {
namespace {

constexpr std::uint64_t run_record_bytes_max = 64 * 1024;

CallContent content_of(const TensorTable& table) {
  CallContent content;
  for (const auto& section : table.sections) {
    content.sections.push_back({section.section, section.body_digest, section.layout.coordinates});
    content.bodies.push_back(section.layout.body);
    for (const auto& item : section.items) {
      content.item_offers.push_back({item.section, item.name, item.scope, xxh3_128(encode(item.value))});
      content.items.push_back(item);
    }
  }
  return content;
}

// A run may end, and be forgotten, inside of the call.
template <typename Run>
void stop(std::shared_ptr<Run> run) {
  if (run) run->stop();
}

}  // namespace

template <typename Function>
auto WorkerActor::guarded(Function function) {
  return [alive = std::weak_ptr<bool>(alive_), function = std::move(function)](auto&&... arguments) {
    if (!alive.expired()) function(std::forward<decltype(arguments)>(arguments)...);
  };
}

WorkerActor::WorkerActor(WorkerSeams seams, WorkerSettings settings)
    : seams_(std::move(seams)), settings_(std::move(settings)), logic_(settings_) {
  seams_.channel.on_frame(guarded([this](const PeerId&, const Bytes& frame) { on_frame(frame); }));
}

WorkerActor::~WorkerActor() { seams_.clock.cancel(timer_); }

void WorkerActor::start(Connected connected) {
  connected_ = std::move(connected);
  dispatch(event::Started{});
}

void WorkerActor::save(Step step, Result<Table> table, SaveOptions options, SaveCallbacks callbacks) {
  const Ordinal ordinal{++ordinals_};
  saves_[ordinal] = {table ? *table : nullptr, std::move(callbacks), nullptr};
  if (!table) return dispatch(event::SaveCalled{ordinal, step, table.error()});
  dispatch(event::SaveCalled{ordinal, step, SaveWish{step, std::move(options), content_of(**table)}});
}

void WorkerActor::load(Selector selector, Result<Table> table, LoadOptions options,
                       std::function<void(Result<LoadEnd>)> ended) {
  const Ordinal ordinal{++ordinals_};
  loads_[ordinal] = {table ? *table : nullptr, std::move(ended), nullptr};
  if (!table) return dispatch(event::LoadCalled{ordinal, table.error()});
  const std::uint64_t budget_bytes = arena_ == nullptr ? 0 : arena_->budget_bytes();
  dispatch(
      event::LoadCalled{ordinal, LoadWish{std::move(selector), std::move(options), budget_bytes, content_of(**table)}});
}

void WorkerActor::close(std::function<void()> closed) {
  closed_ = std::move(closed);
  dispatch(event::CloseAsked{});
}

void WorkerActor::leave(std::function<void()> closed) {
  closed_ = std::move(closed);
  dispatch(event::LeaveAsked{});
}

void WorkerActor::on_frame(const Bytes& frame) {
  auto joined = joiner_.add(frame);
  if (!joined || joined->empty()) return;  // a malformed message is a lost one: what matters is sent again
  auto message = decode_message(*joined);
  if (message) dispatch(event::MessageArrived{*std::move(message)});
}

void WorkerActor::dispatch(WorkerEvent event) {
  events_.push_back(std::move(event));
  if (std::exchange(dispatching_, true)) return;
  while (!events_.empty()) {
    const WorkerEvent next = std::move(events_.front());
    events_.pop_front();
    for (const auto& effect : logic_.on(next, seams_.clock.now())) {
      std::visit([this](const auto& wanted) { run(wanted); }, effect);
    }
  }
  dispatching_ = false;
}

void WorkerActor::run(const effect::ReadRunRecord&) {
  seams_.storage.read_record(std::string(names::run), run_record_bytes_max, guarded([this](Result<Bytes> bytes) {
                               if (!bytes) return dispatch(event::RunRecordRead{bytes.error()});
                               dispatch(event::RunRecordRead{decode_run(*bytes)});
                             }));
}

void WorkerActor::run(const effect::SendMessage& effect) {
  for (auto& frame : split_frames(encode(effect.message), ++messages_sent_)) {
    // A frame that is not taken is a lost one: what matters is sent again.
    if (!seams_.channel.send(coordinator_peer, std::move(frame))) return;
  }
}

void WorkerActor::run(const effect::Connected& effect) {
  if (effect.joined) {
    peers_ = effect.joined->peers;
    const auto here =
        std::count_if(peers_.begin(), peers_.end(), [&](const Peer& peer) { return peer.host == settings_.host; });
    arena_ = &seams_.staging(static_cast<std::uint32_t>(std::max<std::ptrdiff_t>(here, 1)));
  }
  if (auto connected = std::exchange(connected_, nullptr)) connected(effect.joined);
}

void WorkerActor::run(const effect::StartSave& effect) {
  SaveState& state = saves_.at(effect.ordinal);
  const Ordinal ordinal = effect.ordinal;
  SaveRun::Callbacks callbacks;
  callbacks.staged = guarded([this, ordinal] { dispatch(event::SaveStaged{ordinal}); });
  callbacks.moved = guarded([this, ordinal](Phase phase, std::uint64_t bytes) {
    dispatch(event::RunMoved{ordinal, phase, bytes});
  });
  callbacks.ended = guarded([this, ordinal](Result<std::vector<FileRecord>> files) {
    dispatch(event::SaveRunEnded{ordinal, std::move(files), arena_->peak_bytes()});
  });
  callbacks.freed = guarded([this] { resume_runs(); });
  SaveRun::Task task{effect.slice, state.table, settings_.rank, effect.over_budget};
  state.run = std::make_shared<SaveRun>(seams_.storage, seams_.compute, *arena_, std::move(task), std::move(callbacks));
  std::shared_ptr(state.run)->start();
}

void WorkerActor::run(const effect::StartLoad& effect) {
  LoadState& state = loads_.at(effect.ordinal);
  const Ordinal ordinal = effect.ordinal;
  LoadRun::Callbacks callbacks;
  callbacks.moved = guarded([this, ordinal](Phase phase, std::uint64_t bytes) {
    dispatch(event::RunMoved{ordinal, phase, bytes});
  });
  callbacks.ended = guarded([this, ordinal](Result<LoadReceipt> receipt) {
    dispatch(event::LoadRunEnded{ordinal, std::move(receipt)});
  });
  callbacks.freed = guarded([this] { resume_runs(); });
  seams_.transport.begin(settings_.rank, peers_, effect.slice->generation);
  LoadRun::Task task{effect.slice, state.table, settings_.rank, settings_.deadline};
  state.run = std::make_shared<LoadRun>(LoadRun::Seams{seams_.storage, seams_.transport, seams_.compute, *arena_},
                                        std::move(task), std::move(callbacks));
  std::shared_ptr(state.run)->start();
}

// Not from inside a callback of the run itself.
void WorkerActor::run(const effect::StopRun& effect) {
  seams_.clock.call_at(seams_.clock.now(), guarded([this, ordinal = effect.ordinal] {
                         if (const auto save = saves_.find(ordinal); save != saves_.end()) stop(save->second.run);
                         if (const auto load = loads_.find(ordinal); load != loads_.end()) stop(load->second.run);
                       }));
}

// What was read is synced before it is believed.
void WorkerActor::run(const effect::ReadDecision& effect) {
  const auto answer = [this, ordinal = effect.ordinal](Result<Decision> decision) {
    dispatch(event::DecisionRead{ordinal, std::move(decision)});
  };
  seams_.storage.read_record(
      names::decision(effect.id), decision_bytes_max, guarded([this, answer](Result<Bytes> bytes) {
        if (!bytes) return answer(bytes.error());
        auto decision = decode_decision(*bytes);
        if (!decision) return answer(decision.error());
        seams_.storage.sync_folder(std::string(names::decisions), guarded([answer, decision](Result<void> synced) {
                                     answer(synced ? decision : Result<Decision>(synced.error()));
                                   }));
      }));
}

void WorkerActor::run(const effect::SaveKnown& effect) { saves_.at(effect.ordinal).callbacks.known(effect.id); }

void WorkerActor::run(const effect::SaveReleased& effect) {
  saves_.at(effect.ordinal).callbacks.released(effect.staged);
}

void WorkerActor::run(const effect::SaveEnded& effect) {
  auto node = saves_.extract(effect.ordinal);
  node.mapped().callbacks.ended(effect.report);
}

void WorkerActor::run(const effect::LoadEnded& effect) {
  auto node = loads_.extract(effect.ordinal);
  node.mapped().ended(effect.end);
}

void WorkerActor::run(const effect::Closed&) {
  if (auto closed = std::exchange(closed_, nullptr)) closed();
}

void WorkerActor::run(const effect::WakeAt& effect) {
  seams_.clock.cancel(timer_);
  timer_ = seams_.clock.call_at(effect.when, guarded([this] { dispatch(event::TimerFired{}); }));
}

// Runs that wait for staging look again; not from inside a callback of one of them.
void WorkerActor::resume_runs() {
  seams_.clock.call_at(seams_.clock.now(), guarded([this] {
                         for (auto& [ordinal, save] : saves_) {
                           if (save.run) save.run->resume();
                         }
                         for (auto& [ordinal, load] : loads_) {
                           if (load.run) load.run->resume();
                         }
                       }));
}

}  // namespace vckpt
