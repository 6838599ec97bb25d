// One save or load as the worker's logic follows it, from the caller's request to its end.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "runtime/time_point.h"
#include "schema/message.h"
#include "worker/worker_logic.h"

namespace vckpt {

enum class Stage : std::uint8_t {
  queued,     // other calls come first
  asking,     // SaveCall or LoadCall is sent until a slice comes
  running,    // a run copies, writes, reads
  reporting,  // the receipt is sent until the decision comes
  failing,    // Failed is sent until Aborted comes
  checking,   // the coordinator is lost, the decision is being read from storage
};

struct Call {
  Ordinal ordinal;
  std::variant<SaveWish, LoadWish> wish;
  Stage stage = Stage::queued;
  TimePoint stage_since;
  TimePoint next_send;
  bool run_active = false;  // a run may touch the caller's memory
  bool stop_asked = false;
  bool is_released = false;  // save: the caller may change the state
  std::optional<CheckpointId> id;
  Revision revision;
  Phase phase = Phase::call;
  std::uint64_t bytes = 0;
  TimePoint moved_at;            // the last change of phase or bytes
  std::optional<Error> failure;  // of this rank, as the coordinator is told
  std::optional<Result<Report>> outcome;
  std::shared_ptr<const SaveSlice> save_slice;
  std::shared_ptr<const LoadSlice> load_slice;
  std::variant<std::monostate, Receipt, LoadReceipt> receipt;
  TimePoint called_at;
  std::optional<TimePoint> run_started_at;
  std::optional<TimePoint> released_at;

  bool is_save() const { return std::holds_alternative<SaveWish>(wish); }
  const CallContent& content() const;
  // `save of step 7 (call 3)`.
  std::string name() const;
  // The message that is resent in this stage; nothing in the others.
  std::optional<Message> request() const;
  std::optional<LayoutBody> body(const Digest& digest) const;
  // What the receipt says besides the files; invalid when the slice asks for an item that this rank did not offer.
  Result<std::vector<Item>> wanted_items() const;
  // This rank's part of a report.
  void complete(Report& report, TimePoint now) const;
};

}  // namespace vckpt
