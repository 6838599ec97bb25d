#include "predecessor_actor.h"

#include <cstdint>
#include <utility>

#include "schema/codec.h"

namespace vckpt {
namespace {

constexpr std::chrono::milliseconds repeat_after{250};

}  // namespace

struct PredecessorActor::State : std::enable_shared_from_this<PredecessorActor::State> {
  State(Clock& with, Channel& over, RunRecord of, EpochRecord whom, Incarnation as)
      : clock(with), channel(over), run(std::move(of)), epoch(std::move(whom)), incarnation(as) {}

  // A join of a world without ranks: answered, and never part of a session.
  void repeat() {
    if (!done) return;
    Envelope envelope;
    envelope.run = run.nonce;
    envelope.rank = Rank{UINT32_MAX};
    envelope.incarnation = incarnation;
    envelope.sequence = ++sent;
    for (auto& frame : split_frames(encode(EnvelopedMessage{envelope, Join{}}), sent)) {
      if (!channel.send(coordinator_peer, std::move(frame))) break;  // repeated soon
    }
    at(clock.now() + repeat_after, [](State& self) { self.repeat(); });
  }

  void on_frame(const Bytes& frame) {
    const auto whole = joiner.add(frame);
    if (!whole || whole->empty()) return;
    const auto message = decode_message(*whole);
    if (!message) return;
    const auto& envelope = message->envelope;
    if (envelope.run != run.nonce || envelope.epoch != epoch.epoch || envelope.incarnation != incarnation) return;
    if (const auto* refused = std::get_if<Refused>(&message->message)) return finish(refused->error);
    if (std::holds_alternative<Pulse>(message->message)) finish({});
  }

  template <typename Function>
  void at(TimePoint when, Function function) {
    clock.call_at(when, [weak = weak_from_this(), function] {
      if (const auto self = weak.lock()) function(*self);
    });
  }

  void finish(Result<void> answer) {
    if (const auto told = std::exchange(done, nullptr)) told(std::move(answer));
  }

  Clock& clock;
  Channel& channel;
  RunRecord run;
  EpochRecord epoch;
  Incarnation incarnation;
  std::function<void(Result<void>)> done;
  FrameJoiner joiner{control_message_bytes_max};
  std::uint64_t sent = 0;
};

PredecessorActor::PredecessorActor(Clock& clock, Channel& channel, RunRecord run, EpochRecord epoch,
                                   Incarnation incarnation)
    : state_(std::make_shared<State>(clock, channel, std::move(run), std::move(epoch), incarnation)) {}

PredecessorActor::~PredecessorActor() = default;

void PredecessorActor::ask(std::function<void(Result<void>)> done) {
  state_->done = std::move(done);
  state_->channel.on_frame([weak = state_->weak_from_this()](const PeerId&, const Bytes& frame) {
    if (const auto self = weak.lock()) self->on_frame(frame);
  });
  state_->at(state_->clock.now() + predecessor_wait, [](State& self) { self.finish({}); });
  state_->repeat();
}

}  // namespace vckpt
