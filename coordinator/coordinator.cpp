#include "coordinator.h"

#include <algorithm>
#include <utility>

namespace vckpt::coordinator {

std::vector<Effect> Coordinator::on(const Event& event, TimePoint now) {
  if (phase_ == Phase::over) return {};
  if (!started_) started_ = now;
  const auto since_start = std::chrono::duration_cast<std::chrono::seconds>(now - *started_).count();
  Roster nobody;
  std::optional<CheckpointId> no_line;
  std::optional<Error> fatal;
  CallContext context{settings_,
                      now,
                      settings_.started_unix_s + since_start,
                      out_,
                      session_ ? session_->roster() : nobody,
                      bodies_,
                      plans_,
                      attempts_,
                      session_ ? session_->line() : no_line,
                      fatal};
  std::visit([&](const auto& one) { handle(context, one); }, event);
  if (phase_ != Phase::over) settle(context);
  return out_.take();
}

Duration Coordinator::pulse(const Settings& settings, std::uint32_t ranks) {
  const auto usual = std::chrono::milliseconds(std::max<std::uint32_t>(1000, ranks));
  return std::min<Duration>(usual, settings.deadline / 4);
}

void Coordinator::handle(CallContext& context, const Started&) {
  if (phase_ != Phase::idle) return;
  phase_ = Phase::claiming;
  out_.push(ClaimEpoch{});
  out_.push(ArmTimer{context.now + pulse(settings_, 0)});
}

void Coordinator::handle(CallContext& context, const EpochClaimed& event) {
  if (phase_ != Phase::claiming) return;
  run_ = event.run;
  epoch_ = event.epoch;
  out_.begin(run_.nonce, epoch_.epoch);
  out_.log("epoch " + std::to_string(epoch_.epoch.value) + " of run '" + run_.name + "' on " + settings_.root);
  phase_ = Phase::recovering;
  recovery_.begin(out_, context.now);
}

void Coordinator::handle(CallContext& context, const ClaimFailed& event) {
  if (phase_ == Phase::claiming) exit(context, event.error);
}

template <typename Answer>
void Coordinator::handle(CallContext& context, const Answer& answer) {
  if constexpr (requires { recovery_.on_answer(context, removals_, answer); }) {
    if (phase_ == Phase::recovering) return recovery_.on_answer(context, removals_, answer);
  }
  if (session_) session_->on_answer(context, answer);
}

void Coordinator::handle(CallContext&, const DataRemoved& event) { removals_.on_answer(out_, event); }

Member* Coordinator::find_sender(CallContext& context, const std::string& peer, const Envelope& envelope) {
  const bool ours = session_ && envelope.run == run_.nonce && envelope.epoch == epoch_.epoch &&
                    envelope.session == session_->roster().session &&
                    envelope.rank.value < session_->roster().world_size();
  auto* member = ours ? &session_->roster().members[envelope.rank.value] : nullptr;
  if (member == nullptr || member->incarnation != envelope.incarnation) {
    ++dropped_;
    return nullptr;
  }
  if (member->lost) out_.log(session_->roster().describe(envelope.rank) + " is back");
  member->heard = context.now;
  member->lost = false;
  member->peer = peer;
  return member;
}

void Coordinator::handle(CallContext& context, const LayoutBodyReceived& event) {
  if (find_sender(context, event.peer, event.envelope) != nullptr) bodies_.add(event.digest, event.body);
}

void Coordinator::handle(CallContext& context, const Received& event) {
  if (phase_ != Phase::serving) return;  // senders repeat
  if (const auto* join = std::get_if<Join>(&event.message)) return on_join(context, event, *join);
  if (find_sender(context, event.peer, event.envelope) == nullptr) return;
  if (!session_->on_message(context, event.envelope.rank, event.envelope, event.message)) ++dropped_;
}

// A newcomer asks whether this coordinator lives and has live workers: refused when it has, a pulse when it has none.
void Coordinator::on_probe(CallContext& context, const Received& event) {
  const auto& envelope = event.envelope;
  if (!session_ || !session_->roster().anybody_present()) {
    return context.out.answer(event.peer, envelope.rank, envelope.incarnation, Pulse{});
  }
  const auto& line = session_->line();
  auto text = "the coordinator on " + settings_.host + " serves " + std::to_string(session_->roster().world_size()) +
              " ranks" + (line ? ", last at step " + std::to_string(line->step.value) : "");
  context.out.answer(event.peer, envelope.rank, envelope.incarnation, Refused{unavailable(std::move(text))});
}

void Coordinator::on_join(CallContext& context, const Received& event, const Join& join) {
  const auto& envelope = event.envelope;
  auto answer = [&](Message message) {
    out_.answer(event.peer, envelope.rank, envelope.incarnation, std::move(message));
  };
  if (envelope.run != run_.nonce) {
    return answer(Refused{invalid("rank " + std::to_string(envelope.rank.value) + " (" + join.host +
                                  "): its root is not the coordinator's root " + settings_.root + " (" +
                                  settings_.host + "): RUN differs")});
  }
  if (join.world_size == 0) return on_probe(context, event);
  Member member;
  member.peer = event.peer;
  member.incarnation = envelope.incarnation;
  member.join = join;
  member.heard = member.moved = context.now;
  auto find = [&](Roster& roster) -> Member* {
    if (envelope.rank.value >= roster.world_size()) return nullptr;
    auto& found = roster.members[envelope.rank.value];
    return found.incarnation == envelope.incarnation ? &found : nullptr;
  };
  if (auto* known = session_ ? find(session_->roster()) : nullptr) {
    known->peer = event.peer;
    known->heard = context.now;
    known->lost = false;
    return out_.send(session_->roster(), envelope.rank, Attempt{}, joined());
  }
  if (leave_by_) return answer(Refused{unavailable("the coordinator on " + settings_.host + " is stopping")});
  if (next_ && find(*next_)) return answer(Pulse{});
  auto roster = membership_.on_join(settings_, envelope.rank, member, context.now);
  if (!roster) return answer(Refused{roster.error()});
  if (!*roster) return answer(Pulse{});
  next_ = **std::move(roster);
  if (session_)
    session_->fail_all(context,
                       aborted("a new session of " + std::to_string(next_->world_size()) + " ranks has joined"));
}

void Coordinator::activate(CallContext& context) {
  if (session_) {
    for (const auto& member : session_->roster().members) {
      const bool stays = std::any_of(next_->members.begin(), next_->members.end(),
                                     [&](const Member& other) { return other.peer == member.peer; });
      if (!stays) out_.push(DropPeer{member.peer});
    }
  }
  next_->session = Session{++sessions_};
  for (auto& member : next_->members) member.heard = member.moved = context.now;
  session_.emplace(*std::exchange(next_, std::nullopt));
  if (leave_by_) session_->refuse(unavailable("the coordinator on " + settings_.host + " is stopping"));
  out_.log("session " + std::to_string(sessions_) + ": all " + std::to_string(session_->roster().world_size()) +
           " ranks have joined");
  const auto message = joined();
  for (std::uint32_t rank = 0; rank < session_->roster().world_size(); ++rank) {
    out_.send(session_->roster(), Rank{rank}, Attempt{}, message);
  }
}

Message Coordinator::joined() const {
  const auto& roster = session_->roster();
  const auto to_ms = [](Duration duration) {
    return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::milliseconds>(duration).count());
  };
  Joined joined{roster.session, run_.name, to_ms(settings_.deadline), to_ms(pulse(settings_, roster.world_size())), {}};
  for (std::uint32_t rank = 0; rank < roster.world_size(); ++rank) {
    const auto& member = roster.members[rank];
    joined.peers.push_back({Rank{rank}, member.join.host, member.join.transport_address, member.incarnation});
  }
  return joined;
}

void Coordinator::handle(CallContext& context, const TimerFired&) {
  const auto ranks = session_ ? session_->roster().world_size() : 0;
  out_.push(ArmTimer{context.now + pulse(settings_, ranks)});
  if (phase_ == Phase::claiming && *started_ + storage_deadline(settings_) < context.now) {
    return exit(context, unavailable("storage under " + settings_.root + " does not answer"));
  }
  recovery_.tick(context);
  removals_.tick(out_);
  membership_.forget_silent(settings_, context.now);
  judge_members(context);
  ticked_ = context.now;
  if (!session_) return;
  session_->tick(context);
  if (leave_by_ && *leave_by_ < context.now) {
    session_->fail_all(context, unavailable("the coordinator on " + settings_.host + " is stopping"));
  }
}

void Coordinator::judge_members(CallContext& context) {
  if (!session_) return;
  auto& roster = session_->roster();
  // If we stood still ourselves, what the workers sent meanwhile has not been read yet: nobody is judged.
  const bool stood_still = ticked_ && *ticked_ + settings_.deadline / 2 < context.now;
  for (std::uint32_t rank = 0; rank < roster.world_size(); ++rank) {
    auto& member = roster.members[rank];
    if (stood_still) member.heard = member.moved = context.now;
    if (member.present() && member.heard + settings_.deadline < context.now) {
      member.lost = true;
      out_.log(roster.describe_absence(Rank{rank}));
    }
    out_.send(roster, Rank{rank}, Attempt{}, Pulse{});
  }
}

void Coordinator::handle(CallContext& context, const StopAsked&) {
  if (phase_ != Phase::serving) return exit(context, std::nullopt);
  if (leave_by_) leave_by_ = context.now;  // asked twice: no more grace
  if (!leave_by_) leave_by_ = context.now + settings_.grace;
  if (session_) session_->refuse(unavailable("the coordinator on " + settings_.host + " is stopping"));
  out_.log("stopping: no new calls");
}

void Coordinator::settle(CallContext& context) {
  if (session_) {
    session_->advance(context);
    for (const auto& id : session_->take_removals()) removals_.begin(out_, id);
  }
  if (context.fatal) {
    if (session_) session_->abandon(context, *context.fatal);
    return exit(context, context.fatal);
  }
  if (phase_ == Phase::recovering && recovery_.done()) {
    phase_ = Phase::serving;
    out_.push(Serve{epoch_});
  }
  if (next_ && (!session_ || session_->idle())) activate(context);
  if (may_leave(context)) exit(context, std::nullopt);
}

bool Coordinator::may_leave(const CallContext& context) const {
  if (!leave_by_) return false;
  if (*leave_by_ + storage_deadline(settings_) < context.now) return true;
  if (session_ && !session_->idle()) return false;
  const bool alone = !session_ || !session_->roster().anybody_present();
  return removals_.empty() && (alone || *leave_by_ < context.now);
}

void Coordinator::exit(CallContext&, std::optional<Error> error) {
  phase_ = Phase::over;
  out_.push(Exit{std::move(error)});
}

}  // namespace vckpt::coordinator
