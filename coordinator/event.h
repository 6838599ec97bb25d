// What the coordinator's logic is told, and what it asks for. All values: a recorded log of events replays to the same
// effects. An effect that is answered carries a ticket; the answering event brings it back.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "coordinator/catalog/lineage.h"
#include "coordinator/planner/load_planner.h"
#include "coordinator/planner/save_planner.h"
#include "runtime/time_point.h"
#include "schema/codec.h"
#include "schema/manifest.h"
#include "schema/message.h"

namespace vckpt::coordinator {

using Ticket = Id<struct TicketTag, std::uint64_t>;  // from 1

// ---- events

struct Started {};

struct EpochClaimed {
  RunRecord run;
  EpochRecord epoch;
};

struct ClaimFailed {
  Error error;
};

struct CatalogRead {
  Ticket ticket;
  Result<std::shared_ptr<const Catalog>> catalog;
};

// The highest epoch on the root.
struct EpochProbed {
  Ticket ticket;
  Result<Epoch> highest;
};

struct Received {
  std::string peer;
  Envelope envelope;
  Message message;
};

// One of the bodies of a Bodies message, with the digest that it has.
struct LayoutBodyReceived {
  std::string peer;
  Envelope envelope;
  Digest digest;
  std::shared_ptr<const LayoutBody> body;
};

struct EncodedPlan {
  PlannedSave planned;
  Digest digest;
  std::shared_ptr<const Bytes> bytes;
};

struct SavePlanned {
  Ticket ticket;
  Result<EncodedPlan> plan;
  Duration took;
};

struct PlanDurable {
  Ticket ticket;
  Result<void> outcome;
};

struct AttemptCreated {
  Ticket ticket;
  Result<void> outcome;
};

struct SegmentsDurable {
  Ticket ticket;
  Result<std::vector<SegmentReference>> segments;
};

struct DecisionDurable {
  Ticket ticket;
};

// Another decision stands in the register.
struct DecisionTaken {
  Ticket ticket;
};

// Whether the decision stands is not known: publish the same bytes again.
struct DecisionUnknown {
  Ticket ticket;
  Error error;
};

struct DataRemoved {
  Ticket ticket;
  Result<void> outcome;
};

struct CheckpointRead {
  Ticket ticket;
  Result<CheckpointMetadata> checkpoint;
};

struct LoadPlanned {
  Ticket ticket;
  Result<std::shared_ptr<const PlannedLoad>> plan;
  Duration took;
};

struct TimerFired {};
struct StopAsked {};

using Event = std::variant<Started, EpochClaimed, ClaimFailed, CatalogRead, EpochProbed, Received, LayoutBodyReceived,
                           SavePlanned, PlanDurable, AttemptCreated, SegmentsDurable, DecisionDurable, DecisionTaken,
                           DecisionUnknown, DataRemoved, CheckpointRead, LoadPlanned, TimerFired, StopAsked>;

// ---- effects

// Opens (or makes) the RUN record and claims the next epoch.
struct ClaimEpoch {};

struct ReadCatalog {
  Ticket ticket;
};

struct ProbeEpoch {
  Ticket ticket;
};

// From here on workers are served.
struct Serve {
  EpochRecord epoch;
};

struct Send {
  std::string peer;
  EnvelopedMessage message;
};

struct DropPeer {
  std::string peer;
};

struct RunSavePlanner {
  Ticket ticket;
  std::vector<SectionPlacement> sections;
};

struct PublishPlan {
  Ticket ticket;
  Digest digest;
  std::shared_ptr<const Bytes> bytes;
};

// Makes these folders, durably.
struct CreateAttempt {
  Ticket ticket;
  std::vector<std::string> folders;
};

struct PublishSegments {
  Ticket ticket;
  std::shared_ptr<const Manifest> manifest;
  Epoch decided_by;
  Nonce nonce;
};

struct PublishDecision {
  Ticket ticket;
  Decision decision;
};

struct RemoveData {
  Ticket ticket;
  CheckpointId id;
};

struct ReadCheckpoint {
  Ticket ticket;
  Decision decision;
};

struct RunLoadPlanner {
  Ticket ticket;
  StoredCheckpoint stored;
  std::shared_ptr<const LoadRequest> request;
};

struct ArmTimer {
  TimePoint when;
};

// A phase changed: one line for people.
struct Log {
  std::string line;
};

// The last effect. An error says why the coordinator cannot go on.
struct Exit {
  std::optional<Error> error;
};

using Effect =
    std::variant<ClaimEpoch, ReadCatalog, ProbeEpoch, Serve, Send, DropPeer, RunSavePlanner, PublishPlan, CreateAttempt,
                 PublishSegments, PublishDecision, RemoveData, ReadCheckpoint, RunLoadPlanner, ArmTimer, Log, Exit>;

}  // namespace vckpt::coordinator
