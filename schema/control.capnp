# Control messages between workers and coordinator (schema/message.h says what they mean). One Message is one encoded
# message; it travels in frames (schema/codec.h). Form and rules as in storage.capnp.
@0xf71213d5c1b957f2;

using Cxx = import "/capnp/c++.capnp";
using Storage = import "storage.capnp";
$Cxx.namespace("vckpt::wire");

struct Message @0xba72a29450cadec9 {
  run @0 :UInt64;
  epoch @1 :UInt64;
  session @2 :UInt64;
  incarnation @3 :UInt64;
  attempt @4 :UInt64;
  sequence @5 :UInt64;
  rank @6 :UInt32;
  revision @7 :UInt32;
  union {
    unset @8 :Void;  # never written
    join @9 :Join;
    saveCall @10 :SaveCall;
    loadCall @11 :LoadCall;
    bodies @12 :Bodies;
    progress @13 :Progress;
    receipt @14 :Receipt;
    loadReceipt @15 :LoadReceipt;
    failed @16 :Failed;
    goodbye @17 :Void;
    joined @18 :Joined;
    refused @19 :Error;
    needBodies @20 :NeedBodies;
    saveSlice @21 :SaveSlice;
    committed @22 :Outcome;
    aborted @23 :Aborted;
    loadSlice @24 :LoadSlice;
    loaded @25 :Outcome;
    pulse @26 :Void;
  }
}

struct Error @0xc0fd3ad7b870811f {
  code @0 :UInt8;  # Code
  message @1 :Text;
}

# ---- worker to coordinator

struct Join @0xf5a29332b2b9e6bb {
  sessionName @0 :Text;
  worldSize @1 :UInt32;
  host @2 :Text;
  process @3 :UInt64;
  transportAddress @4 :Text;
  stagingBytes @5 :UInt64;
}

struct SectionOffer @0x9740a6d69a431f37 {
  name @0 :Text;
  body @1 :Data;
  coordinates @2 :List(UInt32);
}

struct ItemOffers @0xa376cfd698e95a00 {
  sections @0 :Storage.Names;
  names @1 :Storage.Names;
  scopes @2 :Data;   # one byte each: Scope
  digests @3 :Data;  # 16 bytes each
}

struct SaveOptions @0xe0d144daff745854 {
  overBudget @0 :UInt8;  # OverBudget
  keepForever @1 :Bool;
  meta @2 :Text;
}

struct SaveCall @0xedcdf61be7d6d79b {
  ordinal @0 :UInt64;
  step @1 :UInt64;
  sections @2 :List(SectionOffer);  # sorted by name
  items @3 :ItemOffers;
  options @4 :SaveOptions;
}

struct Selector @0xe00599f1e37c127c {
  union {
    unset @0 :Void;  # never written
    newest @1 :Void;
    step @2 :UInt64;
    id @3 :Storage.CheckpointId;
  }
}

struct LoadOptions @0x83107706226caf4b {
  missing @0 :UInt8;     # Missing
  unexpected @1 :UInt8;  # Unexpected
  perRank @2 :UInt8;     # PerRank
  cast @3 :Bool;
  only @4 :Storage.Names;
  renameWanted @5 :Storage.Names;
  renameStored @6 :Storage.Names;
  resizePatterns @7 :Storage.Names;
  resizeOutsides @8 :Data;  # one byte each: Outside
}

struct LoadCall @0xca28ba104324632a {
  ordinal @0 :UInt64;
  selector @1 :Selector;
  sections @2 :List(SectionOffer);  # sorted by name
  items @3 :ItemOffers;
  options @4 :LoadOptions;
  stagingBytes @5 :UInt64;
}

struct Bodies @0xd6b9c186a7fc73ef {
  bodies @0 :List(Storage.LayoutBody);
}

struct Progress @0xe895afa83f51d98f {
  ordinal @0 :UInt64;
  phase @1 :UInt8;  # Phase
  bytes @2 :UInt64;
}

struct Receipt @0xbc222e2b700b6cf8 {
  ordinal @0 :UInt64;
  plan @1 :Data;
  files @2 :List(Storage.FileRecord);
  items @3 :List(Storage.Item);
  stagingPeakBytes @4 :UInt64;
}

struct LoadReceipt @0xf2ecbc63642b5540 {
  ordinal @0 :UInt64;
  storageBytesRead @1 :UInt64;
  bytesNeeded @2 :UInt64;
  bytesReceived @3 :UInt64;
  stagingPeakBytes @4 :UInt64;
}

struct Failed @0x83045b681005e58d {
  ordinal @0 :UInt64;
  phase @1 :UInt8;  # Phase
  error @2 :Error;
}

# ---- coordinator to worker

struct Peers @0xb159c0e7a26b7dd1 {
  ranks @0 :List(UInt32);
  hosts @1 :Storage.Names;
  transportAddresses @2 :Storage.Names;
  incarnations @3 :List(UInt64);
}

struct Joined @0xb3f7d80e6d272d5a {
  session @0 :UInt64;
  runName @1 :Text;
  deadlineMs @2 :UInt64;
  pulseMs @3 :UInt64;
  peers @4 :Peers;  # all ranks, in order
}

struct NeedBodies @0xa89fa49032e43fb9 {
  ordinal @0 :UInt64;
  digests @1 :Data;  # 16 bytes each
}

struct SectionSlice @0x8c0dd4c12687bb1c {
  section @0 :Text;
  tensors @1 :Storage.Tensors;  # sorted by fqn
  pieces @2 :Storage.Pieces;    # in file order
}

struct SaveSlice @0xf467ddcc3dce8211 {
  ordinal @0 :UInt64;
  id @1 :Storage.CheckpointId;
  plan @2 :Data;
  sections @3 :List(SectionSlice);
  itemSections @4 :Storage.Names;
  itemNames @5 :Storage.Names;
}

struct Report @0xcb98acfeeb060bd6 {
  ranks @0 :UInt32;
  planCached @1 :Bool;
  uniqueBytes @2 :UInt64;
  bytesWritten @3 :UInt64;
  storageBytesRead @4 :UInt64;
  bytesNeeded @5 :UInt64;
  bytesReceived @6 :UInt64;
  mostLoadedOverMean @7 :Float64;
  mostLoadedOverBound @8 :Float64;
  planSeconds @9 :Float64;
  stallSeconds @10 :Float64;
  stallCopySeconds @11 :Float64;
  stallPeersSeconds @12 :Float64;
  durableSeconds @13 :Float64;
  stagingPeakBytes @14 :UInt64;
}

# Committed, and Loaded (without id when there is no checkpoint yet).
struct Outcome @0x9774946272c684c5 {
  ordinal @0 :UInt64;
  id @1 :Storage.CheckpointId;
  report @2 :Report;
}

struct Aborted @0xdd63e098af57bfbb {
  ordinal @0 :UInt64;
  error @1 :Error;
}

struct StoredTensors @0xd5e396f4447dbccb {
  sections @0 :Storage.Names;
  specs @1 :Storage.Tensors;
  wanted @2 :Storage.Names;
}

struct ReadFile @0x8420d700e7365c19 {
  file @0 :Storage.FileRecord;  # chunkDigests from firstChunk on
  firstChunk @1 :UInt64;
}

struct ReadRun @0xbd2d5219a322a0a5 {
  round @0 :UInt32;
  file @1 :UInt32;
  firstChunk @2 :UInt64;
  chunkCount @3 :UInt64;
}

struct Slices @0xfeaf7ef7ce6e81d8 {
  tensors @0 :List(UInt32);
  pieces @1 :Storage.Boxes;
  extents @2 :List(UInt64);  # of each slice: offset of the piece, begin and end of what was read, in bytes
  targets @3 :Storage.Boxes;
  runs @4 :List(UInt32);     # of each slice; empty in a receive from another rank
}

# All slices of one round between this rank and a peer.
struct Transfer @0x98f7e575222e908f {
  round @0 :UInt32;
  peer @1 :UInt32;
  lengthBytes @2 :UInt64;  # only of a receive
  slices @3 :Slices;
}

struct Gaps @0xbbaeac41285ff895 {
  tensors @0 :List(UInt32);
  targets @1 :Storage.Boxes;
  stored @2 :Storage.Boxes;
  outsides @3 :Data;  # one byte each: Outside
}

struct LoadSlice @0x818d87b45a44fe93 {
  ordinal @0 :UInt64;
  id @1 :Storage.CheckpointId;
  generation @2 :UInt32;
  rounds @3 :UInt32;
  tensors @4 :StoredTensors;
  files @5 :List(ReadFile);
  reads @6 :List(ReadRun);
  sends @7 :List(Transfer);
  receives @8 :List(Transfer);
  gaps @9 :Gaps;
  items @10 :List(Storage.Item);
  missing @11 :Storage.Names;
  unexpected @12 :Storage.Names;
  meta @13 :Text;
}
