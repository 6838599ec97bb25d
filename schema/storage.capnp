# Records on storage, and the values that they and the control messages are made of.
#
# Every message is written in canonical form (one segment, preorder, trailing zeros cut) behind the usual segment
# table, so equal values have equal bytes. What is many stands in columns: one list per field, parts of variable length
# joined, with a column of counts or ends. Numbers of enumerations are those of the C++ headers; 0 is never one of them.
# Names of tensors are UTF-8; other text is the bytes that were given. Digests are 16 bytes. Fields are only ever added.
@0x93d8d4822465de49;

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("vckpt::wire");

# ---- columns

struct Names @0x934474cc6c9017f3 {
  text @0 :Data;          # all names joined
  ends @1 :List(UInt32);  # where each name ends in text
}

struct Tensors @0x9065432ef36b1fef {
  fqns @0 :Names;
  dtypes @1 :Data;          # one byte each: DType
  dimCounts @2 :Data;       # one byte each
  sizes @3 :List(UInt64);   # of all shapes, joined
}

struct Boxes @0xc684865e9106964d {
  dimCounts @0 :Data;        # one byte each
  numbers @1 :List(UInt64);  # of each box: its offsets, then its sizes
}

struct Entries @0xdbf296a106003b92 {
  tensors @0 :List(UInt32);
  parts @1 :Data;            # one byte each: 1 has a box, 2 has a range, 3 both
  boxes @2 :Boxes;           # of those that have one
  cutCounts @3 :List(UInt32);
  cuts @4 :List(UInt32);     # of each cut: dim, parts, slot
  ranges @5 :List(UInt64);   # of those that have one: begin, end
}

struct Pieces @0xebaf93e86e16705d {
  tensors @0 :List(UInt32);
  boxes @1 :Boxes;
}

# ---- layouts and plans

struct LayoutBody @0xf833a610421935aa {
  tensors @0 :Tensors;
  entries @1 :Entries;
}

# What each rank persists of one section. A rank's pieces are its body's at its coordinates, and its own.
struct Ownership @0x8c9e2b394a008ca6 {
  bodies @0 :List(UInt32);  # index into SectionPlan.bodies; 0xffffffff: none
  coordinateCounts @1 :List(UInt32);
  coordinates @2 :List(UInt32);
  pieceCounts @3 :List(UInt32);
  pieces @4 :Pieces;
}

struct SectionPlan @0xcb0115906c5dbe3b {
  section @0 :Text;
  tensors @1 :Tensors;  # sorted by fqn
  bodies @2 :List(Entries);
  ranks @3 :Ownership;
}

struct SavePlan @0x9075f4973c493a62 {
  sections @0 :List(SectionPlan);  # sorted by name
}

# ---- items

struct Value @0xc9f771ee813b78ae {
  union {
    unset @0 :Void;  # never written: no value is all zeros
    null @1 :Void;
    boolean @2 :Bool;
    integer @3 :Int64;
    number @4 :Float64;  # the very bits, also of a NaN
    text @5 :Text;
    bytes @6 :Data;
    list @7 :List(Value);
    map :group {
      keys @8 :Names;  # each once, in the order given
      values @9 :List(Value);
    }
  }
}

struct Item @0x86c5eb92cf7c4cd2 {
  section @0 :Text;
  name @1 :Text;
  scope @2 :UInt8;  # Scope
  value @3 :Value;
}

struct StoredItem @0xc55f5d0c3e641a18 {
  rank @0 :UInt32;
  item @1 :Item;
}

# ---- records

struct CheckpointId @0xca317c826103b50e {
  epoch @0 :UInt64;
  attempt @1 :UInt64;
  step @2 :UInt64;
}

struct RunRecord @0xa3f84735b157e4a2 {
  name @0 :Text;
  nonce @1 :UInt64;
}

struct EpochRecord @0xeccc37f8d34f1bd4 {
  epoch @0 :UInt64;
  nonce @1 :UInt64;
  host @2 :Text;
  endpoint @3 :Text;
  publicKey @4 :Text;
  startedUnixS @5 :Int64;
}

struct FileRecord @0xe59198bf6b4048ad {
  section @0 :Text;
  rank @1 :UInt32;
  index @2 :UInt32;
  store @3 :UInt32;
  headerDigest @4 :UInt32;
  headerBytes @5 :UInt64;
  dataBytes @6 :UInt64;
  chunkDigests @7 :List(UInt32);
}

struct ManifestSegment @0xc14d8f86219a874a {
  id @0 :CheckpointId;
  plan @1 :Data;
  worldSize @2 :UInt32;
  index @3 :UInt32;
  count @4 :UInt32;
  meta @5 :Text;
  files @6 :List(FileRecord);
  items @7 :List(StoredItem);
}

struct SegmentReference @0xe20091cfbb59ebf5 {
  digest @0 :Data;
  lengthBytes @1 :UInt64;
}

struct SectionSummary @0xa8e2299c0339b90e {
  name @0 :Text;
  tensors @1 :UInt64;
  dataBytes @2 :UInt64;
}

struct Decision @0x94e98beda0ca9b23 {
  id @0 :CheckpointId;
  verdict @1 :UInt8;  # Verdict
  keepForever @2 :Bool;
  worldSize @3 :UInt32;
  decidedBy @4 :UInt64;
  nonce @5 :UInt64;
  decidedUnixS @6 :Int64;
  parent @7 :CheckpointId;  # absent: none
  reason @8 :Text;
  plan @9 :Data;
  segments @10 :List(SegmentReference);
  sections @11 :List(SectionSummary);
}
