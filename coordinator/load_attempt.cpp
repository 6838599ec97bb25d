#include "load_attempt.h"

#include <algorithm>
#include <utility>

#include "coordinator/save_slice.h"

namespace vckpt::coordinator {

LoadAttempt::LoadAttempt(Ordinal ordinal, std::uint32_t world_size, TimePoint now)
    : ordinal_(ordinal), changed_(now), match_(world_size), receipts_(world_size) {}

std::string LoadAttempt::describe() const {
  const auto call = "load " + std::to_string(ordinal_.value);
  return id_ ? call + " (" + id_->name() + ")" : call;
}

void LoadAttempt::on_call(CallContext& context, Rank rank, const LoadCall& call) {
  if (ended()) return;
  const auto added = match_.add(context.roster, rank, call);
  if (!added) return fail(context, added.error());
  if (*added) changed_ = context.now;
  if (stage_ == Stage::collecting) {
    auto unknown = match_.offers().to_ask(rank, context.bodies, context.roster);
    if (!unknown.empty()) context.out.send(context.roster, rank, Attempt{}, NeedBodies{ordinal_, std::move(unknown)});
  } else if (stage_ == Stage::loading && !receipts_[rank.value]) {
    send_slice(context, rank);
  }
}

void LoadAttempt::advance(CallContext& context, bool may_start) {
  check_ranks(context);
  if (stage_ != Stage::collecting || !may_start) return;
  if (!match_.complete() || !match_.offers().bodies_known(context.bodies)) return;
  context.out.log(describe() + ": called by all " + std::to_string(receipts_.size()) + " ranks");
  stage_ = Stage::probing;
  operation_.begin(context.out, context.now, [](Ticket ticket) { return ProbeEpoch{ticket}; });
}

void LoadAttempt::on_event(CallContext& context, const EpochProbed& event) {
  if (!operation_.answered(event.ticket)) return;
  if (!event.highest) return operation_.failed(event.highest.error());
  if (context.out.epoch() < *event.highest) {
    context.fatal = aborted("superseded: epoch " + std::to_string(event.highest->value) + " was claimed on " +
                            context.settings.root);
    return;
  }
  stage_ = Stage::reading_catalog;
  operation_.begin(context.out, context.now, [](Ticket ticket) { return ReadCatalog{ticket}; });
}

void LoadAttempt::on_event(CallContext& context, const CatalogRead& event) {
  if (!operation_.answered(event.ticket)) return;
  if (!event.catalog) return operation_.failed(event.catalog.error());
  const auto& catalog = **event.catalog;
  const auto& selector = match_.first().selector;
  const auto found = resolve(catalog, selector, context.settings.root);
  if (!found) {
    const bool nothing_yet = std::holds_alternative<Newest>(selector) && found.error().code == Code::not_found;
    if (!nothing_yet) return fail(context, found.error());
    context.out.log(describe() + ": there is no checkpoint yet");
    Report report;
    report.ranks = context.roster.world_size();
    return end(context, Loaded{ordinal_, std::nullopt, report});
  }
  id_ = (*found)->id;
  stage_ = Stage::reading_checkpoint;
  operation_.begin(context.out, context.now, [&](Ticket ticket) { return ReadCheckpoint{ticket, **found}; });
}

void LoadAttempt::on_event(CallContext& context, const CheckpointRead& event) {
  if (!operation_.answered(event.ticket)) return;
  if (!event.checkpoint) {
    if (event.checkpoint.error().code == Code::unavailable) return operation_.failed(event.checkpoint.error());
    return fail(context, event.checkpoint.error());
  }
  if (!match_.offers().bodies_known(context.bodies)) {
    return fail(context, exhausted(describe() + ": more than " + std::to_string(bodies_max) + " layout bodies"));
  }
  auto request = std::make_shared<LoadRequest>();
  request->targets = match_.offers().placements(context.bodies);
  request->options = match_.first().options;
  for (std::uint32_t rank = 0; rank < receipts_.size(); ++rank) {
    request->items.push_back(match_.of(Rank{rank}).items);
    request->staging_bytes.push_back(match_.of(Rank{rank}).staging_bytes);
  }
  stage_ = Stage::planning;
  operation_.begin(context.out, context.now, [&](Ticket ticket) {
    return RunLoadPlanner{ticket, {event.checkpoint->plan, event.checkpoint->manifest}, std::move(request)};
  });
}

void LoadAttempt::on_event(CallContext& context, const LoadPlanned& event) {
  if (!operation_.answered(event.ticket)) return;
  if (!event.plan) return fail(context, event.plan.error().with_context(describe()));
  plan_ = *event.plan;
  if (plan_->slices.size() != receipts_.size()) {
    return fail(context, internal(describe() + ": a plan for " + std::to_string(plan_->slices.size()) + " ranks"));
  }
  plan_seconds_ = std::chrono::duration<double>(event.took).count();
  stage_ = Stage::loading;
  changed_ = context.now;
  context.out.log(describe() + ": planned");
  for (std::uint32_t rank = 0; rank < receipts_.size(); ++rank) send_slice(context, Rank{rank});
}

void LoadAttempt::send_slice(CallContext& context, Rank rank) {
  auto slice = plan_->slices[rank.value];
  slice.ordinal = ordinal_;
  slice.id = *id_;
  slice.generation = static_cast<std::uint32_t>(ordinal_.value);  // each load of a session has its own exchange
  context.out.send(context.roster, rank, Attempt{}, std::move(slice));
}

void LoadAttempt::on_receipt(CallContext& context, Rank rank, const LoadReceipt& receipt) {
  if (stage_ != Stage::loading || receipts_[rank.value]) return;
  receipts_[rank.value] = receipt;
  if (++receipt_count_ < receipts_.size()) return;
  context.line = id_;
  context.out.log(describe() + ": loaded by all ranks");
  end(context, Loaded{ordinal_, id_, report()});
}

Report LoadAttempt::report() const {
  Report report;
  report.ranks = static_cast<std::uint32_t>(receipts_.size());
  report.unique_bytes = plan_->wanted_unique_bytes;
  for (const auto& receipt : receipts_) {
    report.storage_bytes_read += receipt->storage_bytes_read;
    report.bytes_needed += receipt->bytes_needed;
    report.bytes_received += receipt->bytes_received;
    report.staging_peak_bytes = std::max(report.staging_peak_bytes, receipt->staging_peak_bytes);
  }
  report.most_loaded_over_mean = ratio(static_cast<double>(plan_->most_loaded_read_bytes), plan_->mean_read_bytes);
  report.most_loaded_over_bound = ratio(static_cast<double>(plan_->most_loaded_read_bytes), plan_->bound_read_bytes);
  report.plan_seconds = plan_seconds_;
  return report;
}

void LoadAttempt::fail(CallContext& context, const Error& error) {
  if (ended()) return;
  operation_.forget();
  context.out.log(describe() + ": given up: " + error.message);
  end(context, Aborted{ordinal_, error});
}

void LoadAttempt::end(CallContext& context, Message result) {
  stage_ = Stage::over;
  for (std::uint32_t rank = 0; rank < receipts_.size(); ++rank) {
    if (match_.has(Rank{rank})) context.out.send(context.roster, Rank{rank}, Attempt{}, result);
  }
  result_ = std::move(result);
}

void LoadAttempt::check_ranks(CallContext& context) {
  for (std::uint32_t rank = 0; rank < receipts_.size() && !ended(); ++rank) {
    if (context.roster.members[rank].present() || receipts_[rank]) continue;
    fail(context, unavailable(describe() + ": " + context.roster.describe_absence(Rank{rank})));
  }
}

void LoadAttempt::tick(CallContext& context) {
  check_ranks(context);  // who is lost has not moved either: say what is known
  if (ended()) return;
  const auto deadline = context.settings.deadline;
  if (stage_ == Stage::collecting && changed_ + deadline < context.now) {
    if (const auto error = match_.awaited(context.roster, context.bodies)) {
      return fail(context, error->with_context(describe()));
    }
  }
  if (stage_ == Stage::loading) {
    if (const auto rank = stalled_rank(context.roster, receipts_, changed_, deadline, context.now)) {
      return fail(context, unavailable(describe() + ": " + context.roster.describe_stall(*rank, context.now)));
    }
  }
  check_operation(context);
}

void LoadAttempt::check_operation(CallContext& context) {
  if (!operation_.pending() || stage_ == Stage::planning) return;
  const auto waited = context.now - operation_.since();
  if (!operation_.failure()) {
    if (waited > storage_deadline(context.settings)) {
      fail(context, unavailable(describe() + ": storage under " + context.settings.root + " does not answer"));
    }
  } else if (waited > context.settings.deadline) {
    const auto error = *operation_.failure();
    fail(context, error.with_context(describe()));
  } else {
    operation_.again(context.out);
  }
}

}  // namespace vckpt::coordinator
