#include "recovery.h"

namespace vckpt::coordinator {

void Recovery::begin(Outbox& out, TimePoint now) {
  operation_.begin(out, now, [](Ticket ticket) { return ReadCatalog{ticket}; });
}

void Recovery::on_answer(CallContext& context, Removals& removals, const CatalogRead& event) {
  if (!operation_.answered(event.ticket)) return;
  if (!event.catalog) return operation_.failed(event.catalog.error());
  const auto& catalog = **event.catalog;
  if (const auto* newest = catalog.newest()) newest_ = newest->id;
  for (const auto& id : catalog.leftovers) removals.begin(context.out, id);
  for (const auto& id : catalog.undecided) {
    if (id.epoch < context.out.epoch()) undecided_.push_back(id);
  }
  for (const auto& record : catalog.unreadable) {
    context.out.log(record.id.name() + ": its decision cannot be read: " + record.error.message);
  }
  next(context);
}

void Recovery::next(CallContext& context) {
  if (decided_ == undecided_.size()) {
    done_ = true;
    return;
  }
  Decision decision;
  decision.id = undecided_[decided_];
  decision.verdict = Verdict::abort;
  decision.decided_by = context.out.epoch();
  decision.nonce = context.settings.nonce;
  decision.reason =
      "aborted: the coordinator of epoch " + std::to_string(decision.id.epoch.value) + " ended before it was decided";
  decision.decided_unix_s = context.now_unix_s;
  operation_.begin(context.out, context.now, [&](Ticket ticket) {
    return PublishDecision{ticket, std::move(decision)};
  });
}

void Recovery::on_answer(CallContext& context, Removals& removals, const DecisionDurable& event) {
  if (!operation_.answered(event.ticket)) return;
  const auto& id = undecided_[decided_++];
  context.out.log(id.name() + ": was left undecided, is aborted");
  removals.begin(context.out, id);
  next(context);
}

// Its own coordinator was quicker, after we had listed.
void Recovery::on_answer(CallContext& context, Removals&, const DecisionTaken& event) {
  if (!operation_.answered(event.ticket)) return;
  context.out.log(undecided_[decided_].name() + ": was decided meanwhile");
  ++decided_;
  next(context);
}

void Recovery::on_answer(CallContext&, Removals&, const DecisionUnknown& event) {
  if (operation_.answered(event.ticket)) operation_.failed(event.error);
}

void Recovery::tick(CallContext& context) {
  if (done_ || !operation_.pending()) return;
  const auto waited = context.now - operation_.since();
  if (!operation_.failure()) {
    if (waited > storage_deadline(context.settings)) {
      context.fatal = unavailable("recovery: storage under " + context.settings.root + " does not answer");
    }
  } else if (waited > context.settings.deadline) {
    context.fatal = operation_.failure()->with_context("recovery of " + context.settings.root);
  } else {
    operation_.again(context.out);
  }
}

}  // namespace vckpt::coordinator
