// One load call from its first LoadCall to the end. The selector is resolved once, for all ranks; one failure ends the
// load for all; success only when all are done. Pure, as SaveAttempt is.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "coordinator/call_context.h"
#include "coordinator/call_match.h"
#include "coordinator/operation.h"

namespace vckpt::coordinator {

class LoadAttempt {
 public:
  LoadAttempt(Ordinal ordinal, std::uint32_t world_size, TimePoint now);

  void on_call(CallContext& context, Rank rank, const LoadCall& call);
  void on_receipt(CallContext& context, Rank rank, const LoadReceipt& receipt);
  void on_event(CallContext& context, const EpochProbed& event);
  void on_event(CallContext& context, const CatalogRead& event);
  void on_event(CallContext& context, const CheckpointRead& event);
  void on_event(CallContext& context, const LoadPlanned& event);

  void fail(CallContext& context, const Error& error);
  void advance(CallContext& context, bool may_start);
  void tick(CallContext& context);

  bool started() const { return stage_ != Stage::collecting; }
  bool ended() const { return result_.has_value(); }
  TimePoint changed() const { return changed_; }
  const Message& result() const { return *result_; }
  bool called_by(Rank rank) const { return match_.has(rank); }

 private:
  enum class Stage : std::uint8_t { collecting, probing, reading_catalog, reading_checkpoint, planning, loading, over };

  void send_slice(CallContext& context, Rank rank);
  void check_ranks(CallContext& context);
  void check_operation(CallContext& context);
  void end(CallContext& context, Message result);
  Report report() const;
  std::string describe() const;

  Ordinal ordinal_;
  Stage stage_ = Stage::collecting;
  TimePoint changed_;
  CallMatch<LoadCall> match_;
  Operation operation_;
  std::optional<CheckpointId> id_;
  std::shared_ptr<const PlannedLoad> plan_;
  double plan_seconds_ = 0;
  std::vector<std::optional<LoadReceipt>> receipts_;  // by rank
  std::size_t receipt_count_ = 0;
  std::optional<Message> result_;
};

}  // namespace vckpt::coordinator
