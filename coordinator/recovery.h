// What a new coordinator does before it serves: every attempt that its predecessors left undecided gets the decision
// ABORT, one after another, then its data goes; so does the data of attempts that were aborted before.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "coordinator/call_context.h"
#include "coordinator/operation.h"
#include "coordinator/removals.h"

namespace vckpt::coordinator {

class Recovery {
 public:
  void begin(Outbox& out, TimePoint now);
  void on_answer(CallContext& context, Removals& removals, const CatalogRead& event);
  void on_answer(CallContext& context, Removals& removals, const DecisionDurable& event);
  void on_answer(CallContext& context, Removals& removals, const DecisionTaken& event);
  void on_answer(CallContext& context, Removals& removals, const DecisionUnknown& event);
  void tick(CallContext& context);

  bool done() const { return done_; }
  // The newest commit that was found.
  const std::optional<CheckpointId>& newest() const { return newest_; }

 private:
  void next(CallContext& context);

  Operation operation_;
  std::vector<CheckpointId> undecided_;
  std::size_t decided_ = 0;
  std::optional<CheckpointId> newest_;
  bool done_ = false;
};

}  // namespace vckpt::coordinator
