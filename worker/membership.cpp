#include "worker/membership.h"

#include <algorithm>
#include <utility>

namespace vckpt {

std::string in_seconds(Duration duration) {
  const auto tenths = std::chrono::duration_cast<std::chrono::milliseconds>(duration).count() / 100;
  return std::to_string(tenths / 10) + (tenths % 10 == 0 ? "" : "." + std::to_string(tenths % 10)) + " s";
}

Membership::Membership(WorkerSettings settings)
    : settings_(std::move(settings)), deadline_(settings_.deadline), last_run_error_(not_found("RUN was not read")) {}

std::string Membership::self() const {
  return "rank " + std::to_string(settings_.rank.value) + " (" + settings_.host + ")";
}

std::string Membership::coordinator() const {
  return settings_.coordinator.empty() ? "the coordinator" : "the coordinator at " + settings_.coordinator;
}

void Membership::enter(Life next, TimePoint now) {
  life_ = next;
  since_ = heard_at_ = next_send_ = now;
}

void Membership::start(TimePoint now) {
  if (life_ == Life::starting) enter(Life::finding, now);
}

void Membership::run_record_read(const Result<RunRecord>& record, TimePoint now) {
  if (life_ != Life::finding) return;
  if (!record) {
    last_run_error_ = record.error();
    return;
  }
  run_ = record->nonce;
  enter(Life::joining, now);
}

bool Membership::accepts(const EnvelopedMessage& message, TimePoint now) {
  const Envelope& envelope = message.envelope;
  const bool mine = envelope.rank == settings_.rank && envelope.incarnation == settings_.incarnation;
  const bool current =
      life_ == Life::joining || (life_ == Life::joined && envelope.epoch == epoch_ && envelope.session == session_);
  // A refusal may come from a coordinator of another run: that is what it says.
  const bool known_run = envelope.run == run_ || std::holds_alternative<Refused>(message.message);
  if (!mine || !current || !known_run) {
    ++dropped_;
    return false;
  }
  heard_at_ = now;
  return true;
}

void Membership::joined(const Joined& joined, const Envelope& envelope, TimePoint now) {
  epoch_ = envelope.epoch;
  session_ = joined.session;
  constexpr std::uint64_t day_ms = 86'400'000;
  pulse_ = std::chrono::milliseconds(std::clamp<std::uint64_t>(joined.pulse_ms, 1, day_ms));
  deadline_ = std::min<Duration>(deadline_, std::chrono::milliseconds(std::min(joined.deadline_ms, day_ms)));
  deadline_ = std::max(deadline_, 2 * pulse_);
  enter(Life::joined, now);
}

void Membership::lose(Error error) {
  life_ = Life::lost;
  error_ = std::move(error);
}

void Membership::leave(Error error) {
  life_ = Life::left;
  error_ = std::move(error);
}

EnvelopedMessage Membership::stamp(Message message, const std::optional<CheckpointId>& attempt, Revision revision) {
  Envelope envelope{run_, epoch_, session_, settings_.rank, settings_.incarnation, {}, {}, ++sequence_};
  if (attempt) {
    envelope.attempt = attempt->attempt;
    envelope.revision = revision;
  }
  return {envelope, std::move(message)};
}

std::vector<WorkerEffect> Membership::tick(TimePoint now) {
  std::vector<WorkerEffect> effects;
  if (life_ == Life::finding || life_ == Life::joining) tick_connect(now, effects);
  if (life_ != Life::joined) return effects;
  if (now - heard_at_ >= deadline_) {
    lose(unavailable(self() + " lost " + coordinator() + ": nothing heard for " + in_seconds(deadline_)));
  } else if (now >= next_send_) {
    next_send_ = now + pulse_;
    pulse_due_ = true;
  }
  return effects;
}

void Membership::tick_connect(TimePoint now, std::vector<WorkerEffect>& effects) {
  const bool finding = life_ == Life::finding;
  if (finding && now - since_ >= deadline_) {
    return fail_connect(last_run_error_.with_context(self() + ": no run at root '" + settings_.root + "' after " +
                                                     in_seconds(deadline_)),
                        effects);
  }
  if (!finding && now - heard_at_ >= deadline_) {
    return fail_connect(unavailable(self() + ": " + coordinator() + " did not answer for " + in_seconds(deadline_)),
                        effects);
  }
  // A coordinator that answers knows who is missing and says so first; so the limit here is longer.
  if (!finding && now - since_ >= 2 * deadline_) {
    return fail_connect(unavailable(self() + ": not all " + std::to_string(settings_.world_size) +
                                    " ranks of the session joined within " + in_seconds(2 * deadline_)),
                        effects);
  }
  if (now < next_send_) return;
  next_send_ = now + settings_.resend;
  if (finding) {
    effects.push_back(effect::ReadRunRecord{});
    return;
  }
  Join join{settings_.session_name, settings_.world_size,        settings_.host,
            settings_.process,      settings_.transport_address, settings_.staging_bytes};
  effects.push_back(effect::SendMessage{stamp(std::move(join), std::nullopt, {})});
}

void Membership::fail_connect(Error error, std::vector<WorkerEffect>& effects) {
  leave(error);
  effects.push_back(effect::Connected{std::move(error)});
}

bool Membership::take_pulse() { return std::exchange(pulse_due_, false); }

std::optional<TimePoint> Membership::next_wake() const {
  switch (life_) {
    case Life::finding: return std::min(next_send_, since_ + deadline_);
    case Life::joining: return std::min({next_send_, heard_at_ + deadline_, since_ + 2 * deadline_});
    case Life::joined: return std::min(next_send_, heard_at_ + deadline_);
    default: return std::nullopt;
  }
}

}  // namespace vckpt
