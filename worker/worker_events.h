// What happens to a worker's logic, and what it wants done: values.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "runtime/time_point.h"
#include "schema/codec.h"
#include "schema/message.h"
#include "schema/result.h"

namespace vckpt {

// What a call offers. Bodies and items stay here until they are asked for.
struct CallContent {
  std::vector<SectionOffer> sections;
  std::vector<ItemOffer> item_offers;
  std::vector<std::shared_ptr<const LayoutBody>> bodies;  // of the sections
  std::vector<Item> items;                                // of a save
};

struct SaveWish {
  Step step;
  SaveOptions options;
  CallContent content;
};

struct LoadWish {
  Selector selector;
  LoadOptions options;
  std::uint64_t staging_bytes = 0;
  CallContent content;
};

namespace event {
struct Started {};
struct RunRecordRead {
  Result<RunRecord> record;
};
struct MessageArrived {
  EnvelopedMessage message;
};
// Ordinals rise by one from 1, over saves and loads together. An error: this rank cannot take part, and says so to all.
struct SaveCalled {
  Ordinal ordinal;
  Step step;
  Result<SaveWish> wish;
};
struct LoadCalled {
  Ordinal ordinal;
  Result<LoadWish> wish;
};
struct RunMoved {
  Ordinal ordinal;
  Phase phase;
  std::uint64_t bytes;
};
struct SaveStaged {
  Ordinal ordinal;
};  // the caller may change the state again
// A run has ended and touches the caller's memory no more.
struct SaveRunEnded {
  Ordinal ordinal;
  Result<std::vector<FileRecord>> files;
  std::uint64_t staging_peak_bytes;
};
struct LoadRunEnded {
  Ordinal ordinal;
  Result<LoadReceipt> receipt;
};
struct DecisionRead {
  Ordinal ordinal;
  Result<Decision> decision;
};                     // not_found: undecided
struct CloseAsked {};  // leave when all calls have ended
struct LeaveAsked {};  // leave now
struct TimerFired {};
}  // namespace event

using WorkerEvent =
    std::variant<event::Started, event::RunRecordRead, event::MessageArrived, event::SaveCalled, event::LoadCalled,
                 event::RunMoved, event::SaveStaged, event::SaveRunEnded, event::LoadRunEnded, event::DecisionRead,
                 event::CloseAsked, event::LeaveAsked, event::TimerFired>;

struct LoadEnd {
  std::optional<CheckpointId> id;  // nothing: there is no checkpoint yet
  std::vector<std::string> missing;
  std::vector<std::string> unexpected;
  std::vector<Item> items;
  std::string meta;
  Report report;
};

namespace effect {
struct ReadRunRecord {};
struct SendMessage {
  EnvelopedMessage message;
};
struct Connected {
  Result<Joined> joined;
};
struct StartSave {
  Ordinal ordinal;
  std::shared_ptr<const SaveSlice> slice;
  OverBudget over_budget;
};
struct StartLoad {
  Ordinal ordinal;
  std::shared_ptr<const LoadSlice> slice;
};
struct StopRun {
  Ordinal ordinal;
};  // answered by the run's end
struct ReadDecision {
  Ordinal ordinal;
  CheckpointId id;
};
struct SaveKnown {
  Ordinal ordinal;
  CheckpointId id;
};
struct SaveReleased {
  Ordinal ordinal;
  Result<void> staged;
};  // before SaveEnded, once
struct SaveEnded {
  Ordinal ordinal;
  Result<Report> report;
};
struct LoadEnded {
  Ordinal ordinal;
  Result<LoadEnd> end;
};
struct Closed {};
struct WakeAt {
  TimePoint when;
};  // replaces the one before
}  // namespace effect

using WorkerEffect =
    std::variant<effect::ReadRunRecord, effect::SendMessage, effect::Connected, effect::StartSave, effect::StartLoad,
                 effect::StopRun, effect::ReadDecision, effect::SaveKnown, effect::SaveReleased, effect::SaveEnded,
                 effect::LoadEnded, effect::Closed, effect::WakeAt>;

}  // namespace vckpt
