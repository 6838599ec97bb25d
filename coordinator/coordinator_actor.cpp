#include "coordinator_actor.h"

#include <map>
#include <unordered_map>
#include <utility>
#include <vector>

#include "coordinator/catalog/catalog.h"
#include "coordinator/catalog/epochs.h"
#include "coordinator/coordinator.h"
#include "coordinator/manifest_publication_actor.h"
#include "schema/digest.h"
#include "schema/names.h"

namespace vckpt {

using namespace coordinator;  // NOLINT: this file is that namespace's outside

struct CoordinatorActor::State : std::enable_shared_from_this<CoordinatorActor::State> {
  State(Seams where, CoordinatorOptions what, Hooks whom)
      : seams(where), options(std::move(what)), hooks(std::move(whom)), logic(settings()) {}

  Settings settings() {
    options.settings.root = seams.storage.root();
    return options.settings;
  }

  // A completion that is ignored once the actor is gone.
  template <typename Function>
  auto guard(Function function) {
    return [weak = weak_from_this(), function = std::move(function)](auto&&... arguments) mutable {
      if (const auto self = weak.lock()) function(*self, std::forward<decltype(arguments)>(arguments)...);
    };
  }

  void tell(const Event& event) {
    const auto self = shared_from_this();
    for (auto& effect : logic.on(event, seams.clock.now())) {
      std::visit([this](auto& one) { run(one); }, effect);
    }
  }

  void on_frame(const PeerId& peer, const Bytes& frame);
  void on_message(const PeerId& peer, EnvelopedMessage message);

  void run(ClaimEpoch& effect);
  void run(ReadCatalog& effect);
  void run(ProbeEpoch& effect);
  void run(Serve& effect);
  void run(coordinator::Send& effect);
  void run(DropPeer& effect);
  void run(RunSavePlanner& effect);
  void run(PublishPlan& effect);
  void run(CreateAttempt& effect);
  void run(PublishSegments& effect);
  void run(PublishDecision& effect);
  void run(RemoveData& effect);
  void run(ReadCheckpoint& effect);
  void run(RunLoadPlanner& effect);
  void run(ArmTimer& effect);
  void run(Log& effect);
  void run(Exit& effect);

  Seams seams;
  CoordinatorOptions options;
  Hooks hooks;
  Coordinator logic;
  std::unordered_map<PeerId, FrameJoiner> joiners;  // of peers with a message under way
  std::uint64_t messages = 0;
  std::uint64_t malformed = 0;
  TimerId timer = 0;
};

CoordinatorActor::CoordinatorActor(Seams seams, CoordinatorOptions options, Hooks hooks)
    : state_(std::make_shared<State>(seams, std::move(options), std::move(hooks))) {}

CoordinatorActor::~CoordinatorActor() {
  if (state_->timer != 0) state_->seams.clock.cancel(state_->timer);
}

void CoordinatorActor::start() {
  state_->seams.channel.on_frame(
      state_->guard([](State& self, const PeerId& peer, const Bytes& frame) { self.on_frame(peer, frame); }));
  state_->tell(Started{});
}

void CoordinatorActor::stop() { state_->tell(StopAsked{}); }

std::uint64_t CoordinatorActor::dropped_messages() const {
  return state_->logic.dropped_messages() + state_->malformed;
}

void CoordinatorActor::State::on_frame(const PeerId& peer, const Bytes& frame) {
  auto found = joiners.find(peer);
  if (found == joiners.end()) {
    if (joiners.size() >= peers_with_parts_max) joiners.erase(joiners.begin());  // it resends
    found = joiners.emplace(peer, FrameJoiner(joined_message_bytes_max)).first;
  }
  const auto whole = found->second.add(frame);
  if (whole && whole->empty()) return;
  joiners.erase(found);
  auto message = whole ? decode_message(*whole) : Result<EnvelopedMessage>(whole.error());
  if (!message) {
    ++malformed;
    return;
  }
  on_message(peer, *std::move(message));
}

void CoordinatorActor::State::on_message(const PeerId& peer, EnvelopedMessage message) {
  auto* bodies = std::get_if<Bodies>(&message.message);
  if (bodies == nullptr) return tell(Received{peer, message.envelope, std::move(message.message)});
  struct Named {
    std::vector<LayoutBody> bodies;
    std::vector<Digest> digests;
  };
  auto named = std::make_shared<Named>(Named{std::move(bodies->bodies), {}});
  seams.compute.run(
      [named] {
        for (const auto& body : named->bodies) named->digests.push_back(digest(body));
      },
      guard([named, peer, envelope = message.envelope](State& self) {
        for (std::size_t index = 0; index < named->digests.size(); ++index) {
          auto body = std::make_shared<const LayoutBody>(std::move(named->bodies[index]));
          self.tell(LayoutBodyReceived{peer, envelope, named->digests[index], std::move(body)});
        }
      }));
}

void CoordinatorActor::State::run(ClaimEpoch&) {
  auto claimed = guard([](State& self, Result<RunRecord> run, Result<EpochRecord> epoch) {
    if (!run) return self.tell(ClaimFailed{run.error()});
    if (!epoch) return self.tell(ClaimFailed{epoch.error()});
    self.tell(EpochClaimed{*run, *epoch});
  });
  auto opened = guard([claimed](State& self, Result<RunRecord> run) mutable {
    if (!run) return claimed(run, Result<EpochRecord>(run.error()));
    const auto& settings = self.options.settings;
    EpochRecord record{Epoch{}, settings.nonce, settings.host, self.options.endpoint, "", settings.started_unix_s};
    claim_epoch(self.seams.storage, record, [claimed, run](Result<EpochRecord> epoch) mutable { claimed(run, epoch); });
  });
  prepare_root(seams.storage, guard([opened](State& self, Result<void> prepared) mutable {
                 if (!prepared) return self.tell(ClaimFailed{prepared.error()});
                 open_run(self.seams.storage, self.options.run_name, self.options.run_nonce, opened);
               }));
}

void CoordinatorActor::State::run(ReadCatalog& effect) {
  read_catalog(seams.storage, guard([ticket = effect.ticket](State& self, Result<Catalog> catalog) {
                 if (!catalog) return self.tell(CatalogRead{ticket, catalog.error()});
                 self.tell(CatalogRead{ticket, std::make_shared<const Catalog>(*std::move(catalog))});
               }));
}

void CoordinatorActor::State::run(ProbeEpoch& effect) {
  highest_epoch(seams.storage, guard([ticket = effect.ticket](State& self, Result<Epoch> highest) {
                  self.tell(EpochProbed{ticket, std::move(highest)});
                }));
}

void CoordinatorActor::State::run(Serve& effect) {
  if (hooks.serving) hooks.serving(effect.epoch);
}

void CoordinatorActor::State::run(coordinator::Send& effect) {
  const auto encoded = encode(effect.message);
  for (auto& frame : split_frames(encoded, ++messages)) {
    // Not connected, or its queue is full: requests are repeated, and a silent rank meets its deadline.
    if (!seams.channel.send(effect.peer, std::move(frame))) return;
  }
}

void CoordinatorActor::State::run(DropPeer& effect) {
  joiners.erase(effect.peer);
  seams.channel.drop(effect.peer);
}

void CoordinatorActor::State::run(RunSavePlanner& effect) {
  auto plan = std::make_shared<Result<EncodedPlan>>(internal("the planner threw"));
  auto work = [plan, sections = std::move(effect.sections)] {
    auto planned = plan_save(sections);
    if (!planned) {
      *plan = planned.error();
      return;
    }
    auto bytes = std::make_shared<const Bytes>(encode(*planned->plan));
    const auto digest = xxh3_128(*bytes);
    *plan = EncodedPlan{*std::move(planned), digest, std::move(bytes)};
  };
  const auto begun = seams.clock.now();
  seams.compute.run(std::move(work), guard([plan, begun, ticket = effect.ticket](State& self) {
                      self.tell(SavePlanned{ticket, *plan, self.seams.clock.now() - begun});
                    }));
}

void CoordinatorActor::State::run(PublishPlan& effect) {
  const auto name = names::plan(effect.digest);
  seams.storage.publish_once(name, *effect.bytes,
                             guard([ticket = effect.ticket, name](State& self, Result<Published> published) {
                               if (!published) return self.tell(PlanDurable{ticket, published.error()});
                               if (*published != Published::other) return self.tell(PlanDurable{ticket, {}});
                               self.tell(PlanDurable{ticket, corrupt(name + ": other bytes stand there")});
                             }));
}

void CoordinatorActor::State::run(CreateAttempt& effect) {
  create_folders(seams.storage, effect.folders, guard([ticket = effect.ticket](State& self, Result<void> outcome) {
                   self.tell(AttemptCreated{ticket, std::move(outcome)});
                 }));
}

void CoordinatorActor::State::run(PublishSegments& effect) {
  publish_manifest(seams.compute, seams.storage, effect.manifest, effect.decided_by, effect.nonce,
                   guard([ticket = effect.ticket](State& self, Result<std::vector<SegmentReference>> segments) {
                     self.tell(SegmentsDurable{ticket, std::move(segments)});
                   }));
}

void CoordinatorActor::State::run(PublishDecision& effect) {
  auto bytes = encode(effect.decision);
  VCKPT_ASSERT(bytes.size() <= decision_bytes_max);  // sections and segments are bounded
  seams.storage.publish_once(names::decision(effect.decision.id), std::move(bytes),
                             guard([ticket = effect.ticket](State& self, Result<Published> published) {
                               if (!published) return self.tell(DecisionUnknown{ticket, published.error()});
                               if (*published == Published::other) return self.tell(DecisionTaken{ticket});
                               self.tell(DecisionDurable{ticket});
                             }));
}

void CoordinatorActor::State::run(RemoveData& effect) {
  seams.storage.remove(names::checkpoint(effect.id), guard([ticket = effect.ticket](State& self, Result<void> outcome) {
                         self.tell(DataRemoved{ticket, std::move(outcome)});
                       }));
}

void CoordinatorActor::State::run(ReadCheckpoint& effect) {
  read_checkpoint(seams.storage, effect.decision,
                  guard([ticket = effect.ticket](State& self, Result<CheckpointMetadata> checkpoint) {
                    self.tell(CheckpointRead{ticket, std::move(checkpoint)});
                  }));
}

void CoordinatorActor::State::run(RunLoadPlanner& effect) {
  using Planned = Result<std::shared_ptr<const PlannedLoad>>;
  auto plan = std::make_shared<Planned>(internal("the planner threw"));
  auto work = [plan, stored = effect.stored, request = effect.request] {
    auto planned = plan_load(stored, *request);
    *plan = planned ? Planned(std::make_shared<const PlannedLoad>(*std::move(planned))) : Planned(planned.error());
  };
  const auto begun = seams.clock.now();
  seams.compute.run(std::move(work), guard([plan, begun, ticket = effect.ticket](State& self) {
                      self.tell(LoadPlanned{ticket, *plan, self.seams.clock.now() - begun});
                    }));
}

void CoordinatorActor::State::run(ArmTimer& effect) {
  seams.clock.cancel(timer);
  timer = seams.clock.call_at(effect.when, guard([](State& self) { self.tell(TimerFired{}); }));
}

void CoordinatorActor::State::run(Log& effect) {
  if (hooks.log) hooks.log(effect.line);
}

void CoordinatorActor::State::run(Exit& effect) {
  seams.clock.cancel(timer);
  timer = seams.clock.call_at(seams.clock.now(), guard([error = std::move(effect.error)](State& self) mutable {
                                if (const auto exited = std::move(self.hooks.exited)) exited(std::move(error));
                              }));
}

}  // namespace vckpt
