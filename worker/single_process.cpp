#include "worker/single_process.h"

#include <ctime>
#include <utility>

#include "coordinator/coordinator_actor.h"

namespace vckpt {

struct SingleProcess::State {
  CoordinatorActor coordinator;
};

SingleProcess::SingleProcess(Actor& actor, Channel& channel, Storage& storage, Compute& compute, Options options,
                             std::function<void()> serving, std::function<void(std::optional<Error>)> exited) {
  CoordinatorOptions wanted;
  wanted.settings.host = options.host;
  wanted.settings.ranks = 1;
  wanted.settings.deadline = options.deadline;
  wanted.settings.grace = options.deadline;
  wanted.settings.nonce = options.nonce;
  wanted.settings.started_unix_s = std::time(nullptr);
  wanted.run_name = std::move(options.run);
  wanted.run_nonce = options.run_nonce;
  CoordinatorActor::Hooks hooks;
  hooks.serving = [serving = std::move(serving)](const EpochRecord&) { serving(); };
  hooks.exited = std::move(exited);
  const CoordinatorActor::Seams seams{actor.clock(), channel, storage, compute};
  state_.reset(new State{CoordinatorActor(seams, std::move(wanted), std::move(hooks))});
}

SingleProcess::~SingleProcess() = default;

void SingleProcess::start() { state_->coordinator.start(); }
void SingleProcess::stop() { state_->coordinator.stop(); }

}  // namespace vckpt
