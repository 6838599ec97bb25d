// Control messages between coordinator and workers, as values. Small: bulk bytes never travel here. Every message rides
// in an Envelope; what does not match the receiver's run, epoch, session or incarnation is dropped and counted.
// Requests are idempotent and resent until answered, so every handler must bear a message twice.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "ids.h"
#include "item.h"
#include "layout.h"
#include "manifest.h"
#include "options.h"
#include "plan.h"
#include "report.h"
#include "result.h"
#include "slice.h"

namespace vckpt {

struct Envelope {
  Nonce run;
  Epoch epoch;      // 0 in a Join before the worker knows it
  Session session;  // 0 in a Join
  Rank rank;        // the worker's, in both directions
  Incarnation incarnation;
  Attempt attempt;  // 0 when the message concerns none
  Revision revision;
  std::uint64_t sequence = 0;  // per sender, rising
  bool operator==(const Envelope&) const = default;
};

// ---- worker to coordinator

struct Join {
  std::string session_name;  // launcher's id and restart count; empty: the session that is forming
  std::uint32_t world_size = 0;
  std::string host;
  std::uint64_t process = 0;      // pid, for people and for pidfd on the same host
  std::string transport_address;  // where peers reach this rank's bulk transport
  std::uint64_t staging_bytes = 0;
  bool operator==(const Join&) const = default;
};

struct SectionOffer {
  std::string name;
  Digest body;
  Coordinates coordinates;
  bool operator==(const SectionOffer&) const = default;
};

struct ItemOffer {
  std::string section;
  std::string name;
  Scope scope = Scope::replicated;
  Digest digest;  // of the encoded value
  bool operator==(const ItemOffer&) const = default;
};

struct SaveCall {
  Ordinal ordinal;
  Step step;
  std::vector<SectionOffer> sections;  // sorted by name; a rank may offer none
  std::vector<ItemOffer> items;
  SaveOptions options;
  bool operator==(const SaveCall&) const = default;
};

struct LoadCall {
  Ordinal ordinal;
  Selector selector;
  std::vector<SectionOffer> sections;
  std::vector<ItemOffer> items;  // wanted ones; their digests are ignored
  LoadOptions options;
  std::uint64_t staging_bytes = 0;  // this rank's budget for the load
  bool operator==(const LoadCall&) const = default;
};

// Bodies that the coordinator asked for.
struct Bodies {
  std::vector<LayoutBody> bodies;
  bool operator==(const Bodies&) const = default;
};

enum class Phase : std::uint8_t { call = 1, plan, copy, write, sync, decide, read, exchange, scatter };
std::string_view to_string(Phase phase);

// Also the heartbeat: sent at least every pulse interval.
struct Progress {
  Ordinal ordinal;  // 0: idle
  Phase phase = Phase::call;
  std::uint64_t bytes = 0;
  bool operator==(const Progress&) const = default;
};

// This rank's part is durable.
struct Receipt {
  Ordinal ordinal;
  Digest plan;
  std::vector<FileRecord> files;  // one per section in which the rank owns pieces
  std::vector<Item> items;        // those that the slice asked for
  std::uint64_t staging_peak_bytes = 0;
  bool operator==(const Receipt&) const = default;
};

struct LoadReceipt {
  Ordinal ordinal;
  std::uint64_t storage_bytes_read = 0;
  std::uint64_t bytes_needed = 0;
  std::uint64_t bytes_received = 0;
  std::uint64_t staging_peak_bytes = 0;
  bool operator==(const LoadReceipt&) const = default;
};

// This rank cannot finish its part of a call.
struct Failed {
  Ordinal ordinal;
  Phase phase = Phase::call;
  Error error;
  bool operator==(const Failed&) const = default;
};

struct Goodbye {
  bool operator==(const Goodbye&) const = default;
};

// ---- coordinator to worker

struct Peer {
  Rank rank;
  std::string host;
  std::string transport_address;
  Incarnation incarnation;
  bool operator==(const Peer&) const = default;
};

// The session is complete: all its workers have joined.
struct Joined {
  Session session;
  std::string run_name;
  std::uint64_t deadline_ms = 0;
  std::uint64_t pulse_ms = 0;
  std::vector<Peer> peers;  // all ranks, in order
  bool operator==(const Joined&) const = default;
};

struct Refused {
  Error error;
  bool operator==(const Refused&) const = default;
};

struct NeedBodies {
  Ordinal ordinal;
  std::vector<Digest> digests;
  bool operator==(const NeedBodies&) const = default;
};

struct SectionSlice {
  std::string section;
  std::vector<TensorSpec> tensors;  // only those of the pieces, sorted by fqn
  std::vector<Piece> pieces;        // in file order
  bool operator==(const SectionSlice&) const = default;
};

struct ItemKey {
  std::string section;
  std::string name;
  auto operator<=>(const ItemKey&) const = default;
};

// What this rank has to persist. Its folders exist.
struct SaveSlice {
  Ordinal ordinal;
  CheckpointId id;
  Digest plan;
  std::vector<SectionSlice> sections;
  std::vector<ItemKey> items;  // to send with the receipt
  bool operator==(const SaveSlice&) const = default;
};

struct Committed {
  Ordinal ordinal;
  CheckpointId id;
  Report report;  // the job's part
  bool operator==(const Committed&) const = default;
};

// The call is over without success, a save or a load. Whatever was committed before still is.
struct Aborted {
  Ordinal ordinal;
  Error error;
  bool operator==(const Aborted&) const = default;
};

struct StoredTensor {
  std::string section;
  TensorSpec spec;     // as stored
  std::string wanted;  // the fqn under which the targets know it
  bool operator==(const StoredTensor&) const = default;
};

struct ReadFile {
  FileRecord file;  // its chunk digests only for [first_chunk, first_chunk + chunk_digests.size())
  std::uint64_t first_chunk = 0;
  bool operator==(const ReadFile&) const = default;
};

// A run of chunks of one file that this rank reads in one round.
struct ReadRun {
  Round round;
  std::uint32_t file = 0;  // index into LoadSlice::files
  std::uint64_t first_chunk = 0;
  std::uint64_t chunk_count = 0;
  bool operator==(const ReadRun&) const = default;
};

// Bytes that this rank packs out of its runs for one peer. All slices of one (round, peer) make one transfer, in order.
struct SendSlices {
  Round round;
  Rank target;
  std::vector<Slice> slices;
  std::vector<std::uint32_t> runs;  // of each slice: index into LoadSlice::reads
  bool operator==(const SendSlices&) const = default;
};

struct ReceiveSlices {
  Round round;
  Rank source;  // this rank itself: bytes of its own runs
  std::uint64_t length_bytes = 0;
  std::vector<Slice> slices;
  std::vector<std::uint32_t> runs;  // as in SendSlices, only when source is this rank
  bool operator==(const ReceiveSlices&) const = default;
};

// A target box, or a part of it, that stays without stored bytes (resize).
struct Gap {
  std::uint32_t tensor = 0;
  Box target;
  Box stored;  // the part that is loaded; the rest is filled or kept
  Outside outside = Outside::zero;
  bool operator==(const Gap&) const = default;
};

// What this rank reads, sends, receives. Rounds ascend; a rank skips those it has no part in.
struct LoadSlice {
  Ordinal ordinal;
  CheckpointId id;
  std::uint32_t generation = 0;  // of the transport
  std::uint32_t rounds = 0;
  std::vector<StoredTensor> tensors;
  std::vector<ReadFile> files;
  std::vector<ReadRun> reads;
  std::vector<SendSlices> sends;
  std::vector<ReceiveSlices> receives;
  std::vector<Gap> gaps;
  std::vector<Item> items;
  std::vector<std::string> missing;     // wanted, not stored, kept: `section:fqn`
  std::vector<std::string> unexpected;  // stored, not wanted, ignored
  std::string meta;
  bool operator==(const LoadSlice&) const = default;
};

// All ranks are done.
struct Loaded {
  Ordinal ordinal;
  std::optional<CheckpointId> id;  // nothing: there is no checkpoint yet
  Report report;
  bool operator==(const Loaded&) const = default;
};

struct Pulse {
  bool operator==(const Pulse&) const = default;
};

using Message = std::variant<Join, SaveCall, LoadCall, Bodies, Progress, Receipt, LoadReceipt, Failed, Goodbye, Joined,
                             Refused, NeedBodies, SaveSlice, Committed, Aborted, LoadSlice, Loaded, Pulse>;

}  // namespace vckpt
