// Plan of a save: for every section the tensor table and, as a placement in which every element lives exactly once, who
// persists what. Files and extents follow from it by rule (file_pieces), so a plan grows with bodies, not with ranks
// times tensors. Immutable; content-addressed by the digest of its encoded bytes.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ids.h"
#include "layout.h"

namespace vckpt {

// A box of a tensor that one rank persists.
struct Piece {
  std::uint32_t tensor = 0;  // index into SectionPlan::tensors
  Box box;                   // not empty
  auto operator<=>(const Piece&) const = default;
};

// Grids that their holders persist as they are: `tensor` of an entry indexes SectionPlan::tensors; no ranges.
struct OwnedBody {
  std::vector<Entry> entries;
  bool operator==(const OwnedBody&) const = default;
};

constexpr std::uint32_t no_body = 0xFFFFFFFF;

// What one rank persists of a section: the grid pieces of its body at its coordinates, and `pieces`.
struct RankOwnership {
  std::uint32_t body = no_body;  // index into SectionPlan::bodies
  Coordinates coordinates;
  std::vector<Piece> pieces;
  bool operator==(const RankOwnership&) const = default;
};

struct SectionPlan {
  std::string section;
  std::vector<TensorSpec> tensors;  // sorted by fqn (bytewise), each once
  std::vector<OwnedBody> bodies;
  std::vector<RankOwnership> ranks;  // one per rank of the session
  bool operator==(const SectionPlan&) const = default;
};

struct SavePlan {
  std::vector<SectionPlan> sections;  // sorted by name
  bool operator==(const SavePlan&) const = default;

  std::uint32_t world_size() const {
    return sections.empty() ? 0 : static_cast<std::uint32_t>(sections.front().ranks.size());
  }
};

// A piece and where it lies in its file, counted from the data start.
struct PlacedPiece {
  std::uint32_t tensor = 0;
  Box box;
  std::uint64_t offset_bytes = 0;
  std::uint64_t length_bytes = 0;
  bool operator==(const PlacedPiece&) const = default;
};

// The contents of the one file (index 0) that `rank` writes for a section, in file order: wider element types first,
// then by tensor, then by offsets; back to back from data offset 0. So every element is aligned to its own size. Empty
// pieces are left out; tensors without any element belong to no file. No pieces: the rank writes no file.
std::vector<PlacedPiece> file_pieces(const SectionPlan& plan, Rank rank);
// The same order and offsets for pieces given outright (a rank's slice of a plan).
std::vector<PlacedPiece> place_pieces(const std::vector<TensorSpec>& tensors, std::vector<Piece> pieces);

std::uint64_t data_bytes(const std::vector<PlacedPiece>& pieces);

// What a planner says about the balance of a save.
struct Balance {
  std::uint64_t unique_bytes = 0;     // every distinct element once
  std::uint64_t held_bytes = 0;       // all descriptors, replicas included
  std::uint64_t descriptors = 0;      // pieces held, over all ranks
  std::uint64_t distinct_pieces = 0;  // distinct non-empty pieces held
  std::uint64_t pieces_written = 0;   // after splitting
  std::uint64_t most_loaded_bytes = 0;
  double mean_bytes = 0;
  double bound_bytes = 0;  // L*: the least that the most loaded rank can have; PROTOCOL: planning
  bool operator==(const Balance&) const = default;
};

}  // namespace vckpt
