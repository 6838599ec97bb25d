// What all ranks hold (or want) of one section, tensor by tensor: regular grids by index arithmetic, everything else
// enumerated. A grid is a set of tensors that the same ranks cut in the same way; its cells' holders are found once for
// all of them, so thousands of tensors over thousands of ranks cost a few sorts.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "coordinator/planner/holder_sets.h"
#include "schema/layout.h"
#include "schema/result.h"

namespace vckpt {

// One cell of a grid and the ranks that hold it.
struct GridCell {
  std::uint64_t index = 0;  // the parts' indices, row-major in the order of the cuts
  std::uint32_t set = 0;    // in HolderSets
  bool operator==(const GridCell&) const = default;
};

struct GridCut {
  std::uint32_t dim = 0;
  std::uint32_t parts = 1;
  auto operator<=>(const GridCut&) const = default;
};

// By which of its coordinates a body cuts.
struct GridMember {
  std::uint32_t body = 0;
  std::vector<std::uint32_t> slots;  // one per cut
  auto operator<=>(const GridMember&) const = default;
};

// All cells are there, each held by at least one rank; together they are the whole of each tensor, once.
struct Grid {
  std::vector<GridCut> cuts;
  std::vector<GridMember> members;
  std::vector<GridCell> cells;  // ascending by index
  std::vector<std::uint32_t> tensors;
  bool exclusive = false;  // every cell has one holder

  Coordinates part_of(std::uint64_t cell_index) const;
  Box box(const Dims& shape, const Coordinates& part) const;
  // The cut entry by which this rank's body has this cell.
  Entry entry(std::uint32_t tensor, std::uint32_t body, const Coordinates& coordinates, std::uint64_t cell_index) const;
};

// A piece outside of all grids. Not empty; `range` is never all of the box.
struct HeldPiece {
  std::uint32_t tensor = 0;
  Box box;
  std::optional<Range> range;
  std::uint32_t set = 0;
};

struct Holdings {
  std::string section;
  std::vector<TensorSpec> tensors;         // sorted by fqn
  std::vector<std::uint32_t> lowest_rank;  // that lists each tensor
  std::vector<std::uint32_t> body_of;      // of each rank: equal numbers for equal bodies
  std::vector<Grid> grids;
  std::vector<HeldPiece> pieces;  // by tensor, box, range
};

// invalid, naming section, fqn and ranks: what check_layout refuses, ranks that disagree on dtype or shape, one rank
// that gives one piece twice. exhausted: more tensors or pieces than the limits of schema/layout.h.
Result<Holdings> gather_holdings(const std::string& section, const Placement& placement, HolderSets& sets);

// invalid, naming section, fqn, ranks and boxes: a gap or an overlap in the cover of a tensor.
Result<void> check_cover(const Holdings& holdings, const HolderSets& sets);

// Bytes of a piece; sub-byte types are rounded up.
std::uint64_t piece_bytes(DType dtype, const Box& box, const std::optional<Range>& range);

}  // namespace vckpt
