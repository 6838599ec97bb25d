// One save call from its first SaveCall to the decision. Pure: told events, it asks for effects through the context.
// COMMIT needs a receipt of the same plan from every rank, and is never acknowledged before it is durable and the epoch
// was found to be the highest after that. Everything else ends in ABORT, or in nothing when nothing was made.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "coordinator/call_context.h"
#include "coordinator/call_match.h"
#include "coordinator/operation.h"

namespace vckpt::coordinator {

constexpr std::size_t sections_max = 256;  // of one save: a decision stays below its size limit

class SaveAttempt {
 public:
  SaveAttempt(Ordinal ordinal, std::uint32_t world_size, TimePoint now);

  void on_call(CallContext& context, Rank rank, const SaveCall& call);
  void on_receipt(CallContext& context, Rank rank, const Envelope& envelope, const Receipt& receipt);
  void on_event(CallContext& context, const EpochProbed& event);
  void on_event(CallContext& context, const SavePlanned& event);
  void on_event(CallContext& context, const PlanDurable& event);
  void on_event(CallContext& context, const AttemptCreated& event);
  void on_event(CallContext& context, const SegmentsDurable& event);
  void on_event(CallContext& context, const DecisionDurable& event);
  void on_event(CallContext& context, const DecisionTaken& event);
  void on_event(CallContext& context, const DecisionUnknown& event);

  // Gives the call up, unless COMMIT may stand already.
  void fail(CallContext& context, const Error& error);
  // Goes on as far as the turn allows.
  void advance(CallContext& context, Turn turn);
  // Deadlines, and operations that are to be tried again.
  void tick(CallContext& context);

  bool started() const { return stage_ != Stage::collecting; }
  bool ended() const { return result_.has_value(); }
  // COMMIT was published, or may have been.
  bool may_be_committed() const { return stage_ == Stage::deciding || stage_ == Stage::confirming; }
  TimePoint changed() const { return changed_; }
  const Message& result() const { return *result_; }
  bool called_by(Rank rank) const { return match_.has(rank); }
  Attempt attempt() const { return id_.attempt; }
  const std::optional<CheckpointId>& to_remove() const { return to_remove_; }

 private:
  enum class Stage : std::uint8_t {
    collecting,
    probing,  // is our epoch the highest? then plan
    planning,
    publishing_plan,
    creating,
    writing,
    written,  // all receipts are here, not yet our turn
    segments,
    probing_decision,
    deciding,    // COMMIT
    confirming,  // probing once more
    giving_up,   // ABORT is due, not yet our turn
    aborting,
    over,
  };

  void start(CallContext& context);
  void plan(CallContext& context);
  void create(CallContext& context);
  void send_slice(CallContext& context, Rank rank);
  void publish_segments(CallContext& context);
  void publish_commit(CallContext& context);
  void publish_abort(CallContext& context);
  void probe(CallContext& context, Stage stage);
  void give_up(CallContext& context);
  void end(CallContext& context, Message result);
  void end_aborted(CallContext& context);
  void check_ranks(CallContext& context);
  void check_operation(CallContext& context);
  void give_up_operation(CallContext& context, const Error& error);
  Decision decision(const CallContext& context, Verdict verdict) const;
  std::string describe() const;

  Ordinal ordinal_;
  Stage stage_ = Stage::collecting;
  TimePoint changed_;  // last progress of the call itself
  CallMatch<SaveCall> match_;
  Operation operation_;
  CheckpointId id_;
  PlacementKey key_;
  AskedItems asked_;
  EncodedPlan plan_;
  double plan_seconds_ = 0;
  bool plan_cached_ = false;
  std::vector<std::optional<Receipt>> receipts_;  // by rank
  std::size_t receipt_count_ = 0;
  std::shared_ptr<const Manifest> manifest_;
  std::vector<SegmentReference> segments_;
  std::optional<Error> error_;  // why it is given up
  std::optional<Message> result_;
  std::optional<CheckpointId> to_remove_;
};

}  // namespace vckpt::coordinator
