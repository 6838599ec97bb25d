#include "save_attempt.h"

#include <utility>

#include "coordinator/save_slice.h"
#include "schema/names.h"

namespace vckpt::coordinator {
namespace {

constexpr std::size_t reason_bytes_max = 1024;

double seconds(Duration duration) { return std::chrono::duration<double>(duration).count(); }

std::string one_line(const Error& error) {
  auto text = std::string(to_string(error.code)) + ": " + error.message;
  for (auto& character : text) {
    if (character == '\n' || character == '\r') character = ' ';
  }
  if (text.size() <= reason_bytes_max) return text;
  text.resize(reason_bytes_max);
  while (!text.empty() && (static_cast<unsigned char>(text.back()) & 0x80) != 0) text.pop_back();  // no half characters
  return text;
}

}  // namespace

SaveAttempt::SaveAttempt(Ordinal ordinal, std::uint32_t world_size, TimePoint now)
    : ordinal_(ordinal), changed_(now), match_(world_size), receipts_(world_size) {}

std::string SaveAttempt::describe() const {
  const auto call = "save " + std::to_string(ordinal_.value);
  if (id_ != CheckpointId{}) return call + " (" + id_.name() + ")";
  return match_.any() ? call + " (step " + std::to_string(match_.first().step.value) + ")" : call;
}

void SaveAttempt::on_call(CallContext& context, Rank rank, const SaveCall& call) {
  if (ended()) return;
  const auto added = match_.add(context.roster, rank, call);
  if (!added) return fail(context, added.error());
  if (*added) changed_ = context.now;
  if (stage_ == Stage::collecting) {
    auto unknown = match_.offers().to_ask(rank, context.bodies, context.roster);
    if (!unknown.empty()) context.out.send(context.roster, rank, Attempt{}, NeedBodies{ordinal_, std::move(unknown)});
  } else if (stage_ == Stage::writing && !receipts_[rank.value]) {
    send_slice(context, rank);
  }
}

void SaveAttempt::advance(CallContext& context, Turn turn) {
  check_ranks(context);
  if (stage_ == Stage::collecting && turn.may_start && match_.complete() &&
      match_.offers().bodies_known(context.bodies)) {
    start(context);
  } else if (stage_ == Stage::written && turn.may_decide) {
    publish_segments(context);
  } else if (stage_ == Stage::giving_up && turn.may_decide) {
    publish_abort(context);
  }
}

void SaveAttempt::probe(CallContext& context, Stage stage) {
  stage_ = stage;
  operation_.begin(context.out, context.now, [](Ticket ticket) { return ProbeEpoch{ticket}; });
}

void SaveAttempt::start(CallContext& context) {
  id_ = {context.out.epoch(), Attempt{++context.attempts}, match_.first().step};
  auto asked = match_items(context.roster, match_.items());
  if (!asked) return fail(context, asked.error().with_context(describe()));
  asked_ = *std::move(asked);
  key_ = match_.offers().key();
  if (key_.sections.size() > sections_max) {
    return fail(context, invalid(describe() + ": " + std::to_string(key_.sections.size()) + " sections, at most " +
                                 std::to_string(sections_max) + " are allowed"));
  }
  context.out.log(describe() + ": called by all " + std::to_string(receipts_.size()) + " ranks");
  probe(context, Stage::probing);
}

void SaveAttempt::on_event(CallContext& context, const EpochProbed& event) {
  if (!operation_.answered(event.ticket)) return;
  if (!event.highest) return operation_.failed(event.highest.error());
  if (context.out.epoch() < *event.highest) {
    context.fatal = aborted("superseded: epoch " + std::to_string(event.highest->value) + " was claimed on " +
                            context.settings.root);
    return;
  }
  if (stage_ == Stage::probing) return plan(context);
  if (stage_ == Stage::probing_decision) return publish_commit(context);
  VCKPT_ASSERT(stage_ == Stage::confirming);
  std::vector<Receipt> receipts;
  for (auto& receipt : receipts_) receipts.push_back(*std::move(receipt));
  auto report = save_report(plan_.planned.balance, receipts, plan_seconds_);
  report.plan_cached = plan_cached_;
  context.line = id_;
  context.out.log(describe() + ": committed");
  end(context, Committed{ordinal_, id_, report});
}

void SaveAttempt::plan(CallContext& context) {
  if (const auto* known = context.plans.find(key_)) {
    plan_ = *known;
    plan_cached_ = true;
    return create(context);
  }
  if (!match_.offers().bodies_known(context.bodies)) {
    return fail(context, exhausted(describe() + ": more than " + std::to_string(bodies_max) + " layout bodies"));
  }
  stage_ = Stage::planning;
  operation_.begin(context.out, context.now, [&](Ticket ticket) {
    return RunSavePlanner{ticket, match_.offers().placements(context.bodies)};
  });
}

void SaveAttempt::on_event(CallContext& context, const SavePlanned& event) {
  if (!operation_.answered(event.ticket)) return;
  if (!event.plan) return fail(context, event.plan.error().with_context(describe()));
  plan_ = *event.plan;
  plan_seconds_ = seconds(event.took);
  stage_ = Stage::publishing_plan;
  operation_.begin(context.out, context.now, [&](Ticket ticket) {
    return PublishPlan{ticket, plan_.digest, plan_.bytes};
  });
}

void SaveAttempt::on_event(CallContext& context, const PlanDurable& event) {
  if (!operation_.answered(event.ticket)) return;
  if (!event.outcome) return fail(context, event.outcome.error().with_context(describe() + ": its plan"));
  plan_.bytes.reset();
  context.plans.add(key_, plan_);
  context.out.log(describe() + ": plan " + plan_.digest.hex() + " is published");
  create(context);
}

void SaveAttempt::create(CallContext& context) {
  stage_ = Stage::creating;
  operation_.begin(context.out, context.now, [&](Ticket ticket) {
    return CreateAttempt{ticket, attempt_folders(*plan_.planned.plan, id_, context.roster.world_size())};
  });
}

void SaveAttempt::on_event(CallContext& context, const AttemptCreated& event) {
  if (!operation_.answered(event.ticket)) return;
  if (!event.outcome && !error_) error_ = event.outcome.error().with_context(describe() + ": its folders");
  if (error_) return give_up(context);
  stage_ = Stage::writing;
  changed_ = context.now;
  for (std::uint32_t rank = 0; rank < receipts_.size(); ++rank) send_slice(context, Rank{rank});
}

void SaveAttempt::send_slice(CallContext& context, Rank rank) {
  SaveSlice slice{ordinal_, id_, plan_.digest, section_slices(*plan_.planned.plan, rank), {}};
  for (const auto& item : asked_[rank.value]) slice.items.push_back({item.section, item.name});
  context.out.send(context.roster, rank, id_.attempt, std::move(slice));
}

void SaveAttempt::on_receipt(CallContext& context, Rank rank, const Envelope& envelope, const Receipt& receipt) {
  // Votes count per (attempt, revision, rank, incarnation); the incarnation is the member's.
  const bool ours = envelope.attempt == id_.attempt && envelope.revision == Revision{} && receipt.plan == plan_.digest;
  if (stage_ != Stage::writing || !ours || receipts_[rank.value]) return;
  if (auto checked = check_receipt(*plan_.planned.plan, rank, asked_[rank.value], receipt); !checked) {
    return fail(context,
                checked.error().with_context(describe() + ": the receipt of " + context.roster.describe(rank)));
  }
  receipts_[rank.value] = receipt;
  if (++receipt_count_ < receipts_.size()) return;
  context.out.log(describe() + ": written by all ranks");
  stage_ = Stage::written;
}

void SaveAttempt::publish_segments(CallContext& context) {
  std::vector<Receipt> receipts;
  for (const auto& receipt : receipts_) receipts.push_back(*receipt);
  manifest_ = std::make_shared<const Manifest>(make_manifest(id_, plan_.digest, match_.first().options.meta, receipts));
  stage_ = Stage::segments;
  operation_.begin(context.out, context.now, [&](Ticket ticket) {
    return PublishSegments{ticket, manifest_, context.out.epoch(), context.settings.nonce};
  });
}

void SaveAttempt::on_event(CallContext& context, const SegmentsDurable& event) {
  if (!operation_.answered(event.ticket)) return;
  if (!event.segments && !error_) error_ = event.segments.error().with_context(describe() + ": its manifest");
  if (error_) return give_up(context);
  segments_ = *event.segments;
  probe(context, Stage::probing_decision);
}

Decision SaveAttempt::decision(const CallContext& context, Verdict verdict) const {
  Decision decision;
  decision.id = id_;
  decision.verdict = verdict;
  decision.decided_by = context.out.epoch();
  decision.nonce = context.settings.nonce;
  decision.plan = plan_.digest;
  decision.world_size = context.roster.world_size();
  decision.decided_unix_s = context.now_unix_s;
  if (verdict == Verdict::abort) {
    decision.reason = one_line(*error_);
    return decision;
  }
  decision.parent = context.line;
  decision.segments = segments_;
  decision.sections = summarize(*plan_.planned.plan, *manifest_);
  decision.keep_forever = match_.first().options.keep_forever;
  return decision;
}

void SaveAttempt::publish_commit(CallContext& context) {
  stage_ = Stage::deciding;
  operation_.begin(context.out, context.now, [&](Ticket ticket) {
    return PublishDecision{ticket, decision(context, Verdict::commit)};
  });
}

void SaveAttempt::publish_abort(CallContext& context) {
  stage_ = Stage::aborting;
  operation_.begin(context.out, context.now, [&](Ticket ticket) {
    return PublishDecision{ticket, decision(context, Verdict::abort)};
  });
}

void SaveAttempt::on_event(CallContext& context, const DecisionDurable& event) {
  if (!operation_.answered(event.ticket)) return;
  if (stage_ == Stage::deciding) return probe(context, Stage::confirming);
  to_remove_ = id_;
  end_aborted(context);
}

void SaveAttempt::on_event(CallContext& context, const DecisionTaken& event) {
  if (!operation_.answered(event.ticket)) return;
  context.fatal = aborted("superseded: another coordinator has decided " + id_.name());
}

void SaveAttempt::on_event(CallContext& context, const DecisionUnknown& event) {
  if (!operation_.answered(event.ticket)) return;
  context.out.log(describe() + ": whether its decision stands is unknown: " + event.error.message);
  operation_.failed(event.error);
}

void SaveAttempt::fail(CallContext& context, const Error& error) {
  if (error_ || ended() || may_be_committed()) return;
  error_ = error;
  // Folders and segments that are just being made would survive their removal: their answer is waited for.
  if (stage_ != Stage::creating && stage_ != Stage::segments) give_up(context);
}

void SaveAttempt::give_up(CallContext& context) {
  operation_.forget();
  context.out.log(describe() + ": given up: " + error_->message);
  const bool made = stage_ >= Stage::creating;
  if (!made) return end_aborted(context);
  stage_ = Stage::giving_up;
}

void SaveAttempt::end_aborted(CallContext& context) { end(context, Aborted{ordinal_, *error_}); }

void SaveAttempt::end(CallContext& context, Message result) {
  stage_ = Stage::over;
  for (std::uint32_t rank = 0; rank < receipts_.size(); ++rank) {
    if (match_.has(Rank{rank})) context.out.send(context.roster, Rank{rank}, id_.attempt, result);
  }
  result_ = std::move(result);
}

// A rank whose receipt is here has done its part; of the others each must be there.
void SaveAttempt::check_ranks(CallContext& context) {
  if (error_ || stage_ > Stage::writing) return;
  for (std::uint32_t rank = 0; rank < receipts_.size(); ++rank) {
    const auto& member = context.roster.members[rank];
    if (member.present() || receipts_[rank]) continue;
    return fail(context, unavailable(describe() + ": " + context.roster.describe_absence(Rank{rank})));
  }
}

void SaveAttempt::tick(CallContext& context) {
  check_ranks(context);  // who is lost has not moved either: say what is known
  if (ended()) return;
  const auto deadline = context.settings.deadline;
  if (stage_ == Stage::collecting && changed_ + deadline < context.now) {
    if (const auto error = match_.awaited(context.roster, context.bodies)) {
      return fail(context, error->with_context(describe()));
    }
  }
  if (stage_ == Stage::writing) {
    if (const auto rank = stalled_rank(context.roster, receipts_, changed_, deadline, context.now)) {
      return fail(context, unavailable(describe() + ": " + context.roster.describe_stall(*rank, context.now)));
    }
  }
  check_operation(context);
}

void SaveAttempt::check_operation(CallContext& context) {
  if (!operation_.pending() || stage_ == Stage::planning) return;
  const auto waited = context.now - operation_.since();
  if (!operation_.failure()) {
    if (waited > storage_deadline(context.settings)) {
      context.fatal = unavailable(describe() + ": storage under " + context.settings.root + " does not answer");
    }
  } else if (waited > context.settings.deadline) {
    give_up_operation(context, *operation_.failure());
  } else {
    operation_.again(context.out);
  }
}

void SaveAttempt::give_up_operation(CallContext& context, const Error& error) {
  if (may_be_committed()) {
    context.fatal = error.with_context(describe() + ": its commit cannot be confirmed");
  } else if (stage_ == Stage::aborting) {
    // The register stays open; the next coordinator on this root closes it. Nobody is told of a commit.
    context.out.log(describe() + ": ABORT could not be published: " + error.message);
    operation_.forget();
    end_aborted(context);
  } else {
    fail(context, error.with_context(describe()));
  }
}

}  // namespace vckpt::coordinator
