#include "coordinator/planner/ownership.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "coordinator/planner/balance.h"
#include "coordinator/planner/byte_line.h"

namespace vckpt {
namespace {

// A finer grain than the wanted one where the whole load is small, so that small models balance as well.
constexpr std::uint64_t grains_per_load = 256;

constexpr std::uint32_t no_grid = 0xFFFFFFFF;

// A piece on the byte line of the set that holds it: a cell of a grid, or a HeldPiece.
struct Shared {
  std::uint32_t section = 0;
  std::uint32_t tensor = 0;
  std::uint32_t grid = no_grid;
  std::uint32_t index = 0;  // of the grid's cell, or of the piece
  auto operator<=>(const Shared&) const = default;
};

// A whole cell of a grid that a rank owns.
struct OwnedCell {
  std::uint32_t tensor = 0;
  std::uint32_t grid = 0;
  std::uint32_t cell = 0;
};

// Tensors of one grid that have equal bytes in every cell.
struct Alike {
  const TensorSpec* spec = nullptr;
  std::uint64_t count = 0;
};

std::vector<Alike> alike(const Holdings& holdings, const Grid& grid) {
  std::map<std::pair<DType, Dims>, Alike> groups;
  for (const auto tensor : grid.tensors) {
    const TensorSpec& spec = holdings.tensors[tensor];
    auto& group = groups[std::pair(spec.dtype, spec.shape)];
    group.spec = &spec;
    ++group.count;
  }
  std::vector<Alike> found;
  for (const auto& [key, group] : groups) found.push_back(group);
  return found;
}

class Owners {
 public:
  Owners(const std::vector<Holdings>& sections, const std::vector<SectionPlacement>& placements, const HolderSets& sets,
         std::uint64_t grain_bytes)
      : sections_(sections), placements_(placements), sets_(sets), grain_bytes_(grain_bytes) {
    const std::size_t world = placements.empty() ? 0 : placements.front().placement.layouts.size();
    loads_.assign(world, 0);
    lines_.resize(sets.count());
    line_bytes_.assign(sets.count(), 0);
    owned_.resize(sections.size());
    for (auto& owned : owned_) owned.resize(world);
  }

  PlannedSave run() {
    for (std::uint32_t section = 0; section < sections_.size(); ++section) {
      count_tensors(section);
      for (std::uint32_t grid = 0; grid < sections_[section].grids.size(); ++grid) add_grid(section, grid);
      for (std::uint32_t piece = 0; piece < sections_[section].pieces.size(); ++piece) add_piece(section, piece);
    }
    share_lines();
    auto plan = std::make_shared<SavePlan>();
    for (std::uint32_t section = 0; section < sections_.size(); ++section) plan->sections.push_back(assemble(section));
    if (!loads_.empty()) {
      balance_.most_loaded_bytes = *std::max_element(loads_.begin(), loads_.end());
      balance_.mean_bytes = static_cast<double>(balance_.unique_bytes) / static_cast<double>(loads_.size());
    }
    return PlannedSave{std::move(plan), balance_};
  }

 private:
  struct OwnedByRank {
    std::vector<OwnedCell> cells;
    std::vector<Piece> pieces;
  };

  void count_tensors(std::uint32_t section) {
    for (const auto& spec : sections_[section].tensors)
      balance_.unique_bytes += box_bytes(spec.dtype, whole(spec.shape));
  }

  void count_held(std::uint64_t bytes, std::uint64_t holders, std::uint64_t tensors) {
    if (bytes == 0) return;
    balance_.held_bytes += bytes * holders * tensors;
    balance_.descriptors += holders * tensors;
    balance_.distinct_pieces += tensors;
  }

  void add_grid(std::uint32_t section, std::uint32_t number) {
    const Grid& grid = sections_[section].grids[number];
    const auto groups = alike(sections_[section], grid);
    for (std::uint32_t cell = 0; cell < grid.cells.size(); ++cell) {
      const Ranks& ranks = sets_.ranks(grid.cells[cell].set);
      const Coordinates part = grid.part_of(grid.cells[cell].index);
      for (const auto& group : groups) {
        const std::uint64_t bytes = box_bytes(group.spec->dtype, grid.box(group.spec->shape, part));
        count_held(bytes, ranks.size(), group.count);
        if (grid.exclusive) {
          loads_[ranks.front()] += bytes * group.count;
          balance_.pieces_written += bytes == 0 ? 0 : group.count;
        } else {
          line_bytes_[grid.cells[cell].set] += bytes * group.count;
        }
      }
      if (grid.exclusive) continue;
      for (const auto tensor : grid.tensors) {
        lines_[grid.cells[cell].set].push_back(Shared{section, tensor, number, cell});
      }
    }
  }

  void add_piece(std::uint32_t section, std::uint32_t number) {
    const HeldPiece& piece = sections_[section].pieces[number];
    const std::uint64_t bytes = piece_bytes(sections_[section].tensors[piece.tensor].dtype, piece.box, piece.range);
    count_held(bytes, sets_.ranks(piece.set).size(), 1);
    line_bytes_[piece.set] += bytes;
    lines_[piece.set].push_back(Shared{section, piece.tensor, no_grid, number});
  }

  void share_lines() {
    std::vector<SharedBytes> shared;
    std::vector<std::uint32_t> shared_set;
    for (std::uint32_t set = 0; set < lines_.size(); ++set) {
      if (lines_[set].empty()) continue;
      if (sets_.ranks(set).size() == 1) {
        loads_[sets_.ranks(set).front()] += line_bytes_[set];
        lay(set, {line_bytes_[set]});
        continue;
      }
      shared.push_back(SharedBytes{&sets_.ranks(set), line_bytes_[set]});
      shared_set.push_back(set);
    }
    const Shares shares = share(loads_, shared);
    balance_.bound_bytes = shares.bound_bytes;
    const auto fine = static_cast<std::uint64_t>(shares.bound_bytes / static_cast<double>(grains_per_load));
    grain_bytes_ = std::min(grain_bytes_, fine);
    Ledger ledger(loads_);
    for (const auto number : shares.order) {
      const std::uint32_t set = shared_set[number];
      const auto taken = lay(set, ledger.aim(sets_.ranks(set), shares.quotas[number]));
      ledger.enter(sets_.ranks(set), shares.quotas[number], taken);
    }
    loads_ = ledger.loads();
  }

  // Cuts the line of a set by quotas; what each of its ranks took in bytes.
  std::vector<std::uint64_t> lay(std::uint32_t set, std::vector<std::uint64_t> quotas) {
    const Ranks& ranks = sets_.ranks(set);
    std::vector<std::uint64_t> taken(ranks.size(), 0);
    auto& line = lines_[set];
    std::sort(line.begin(), line.end());
    LineCutter cutter(std::move(quotas), grain_bytes_);
    for (const auto& shared : line) {
      const Holdings& holdings = sections_[shared.section];
      LineSegment segment;
      segment.spec = &holdings.tensors[shared.tensor];
      if (shared.grid != no_grid) {
        const Grid& grid = holdings.grids[shared.grid];
        segment.box = grid.box(segment.spec->shape, grid.part_of(grid.cells[shared.index].index));
        segment.range = Range{0, elements(segment.box)};
      } else {
        const HeldPiece& piece = holdings.pieces[shared.index];
        segment.box = piece.box;
        segment.range = piece.range.value_or(Range{0, elements(piece.box)});
      }
      for (const auto& part : cutter.cut(segment)) {
        taken[part.taker] += piece_bytes(segment.spec->dtype, segment.box, part.range);
        own(ranks[part.taker], shared, segment, part.range);
      }
    }
    line = {};
    return taken;
  }

  void own(std::uint32_t rank, const Shared& shared, const LineSegment& segment, Range range) {
    OwnedByRank& owned = owned_[shared.section][rank];
    const bool all = range.begin == 0 && range.end == elements(segment.box);
    if (all && shared.grid != no_grid) {
      owned.cells.push_back(OwnedCell{shared.tensor, shared.grid, shared.index});
      ++balance_.pieces_written;
      return;
    }
    for (auto& box : to_boxes(segment.box, range)) {
      owned.pieces.push_back(Piece{shared.tensor, std::move(box)});
      ++balance_.pieces_written;
    }
  }

  // Entries of the grids that are held exclusively, for each body.
  std::map<std::uint32_t, std::vector<Entry>> exclusive_entries(const Holdings& holdings) const {
    std::map<std::uint32_t, std::vector<Entry>> entries;
    for (const auto& grid : holdings.grids) {
      if (!grid.exclusive) continue;
      for (const auto& member : grid.members) {
        Entry entry;
        for (std::size_t i = 0; i < grid.cuts.size(); ++i) {
          entry.cuts.push_back(Cut{grid.cuts[i].dim, grid.cuts[i].parts, member.slots[i]});
        }
        for (const auto tensor : grid.tensors) {
          entry.tensor = tensor;
          entries[member.body].push_back(entry);
        }
      }
    }
    for (auto& [body, list] : entries) std::sort(list.begin(), list.end());
    return entries;
  }

  // Ranks that own whole cells in the same way share a body; cells that only one rank owns in its way become pieces.
  SectionPlan assemble(std::uint32_t number) {
    const Holdings& holdings = sections_[number];
    const auto& layouts = placements_[number].placement.layouts;
    SectionPlan plan;
    plan.section = holdings.section;
    plan.tensors = holdings.tensors;
    plan.ranks.resize(layouts.size());
    const auto exclusive = exclusive_entries(holdings);
    std::map<std::pair<std::uint32_t, std::vector<Entry>>, Ranks> by_entries;
    for (std::uint32_t rank = 0; rank < layouts.size(); ++rank) {
      std::vector<Entry> entries;
      for (const auto& cell : owned_[number][rank].cells) {
        const Grid& grid = holdings.grids[cell.grid];
        entries.push_back(
            grid.entry(cell.tensor, holdings.body_of[rank], layouts[rank].coordinates, grid.cells[cell.cell].index));
      }
      const bool grids = !entries.empty() || exclusive.contains(holdings.body_of[rank]);
      if (grids) by_entries[std::pair(holdings.body_of[rank], std::move(entries))].push_back(rank);
    }
    std::map<std::vector<Entry>, std::uint32_t> numbers;
    for (const auto& [key, ranks] : by_entries) {
      const auto own = exclusive.find(key.first);
      std::vector<Entry> entries = own == exclusive.end() ? std::vector<Entry>{} : own->second;
      const bool shared = ranks.size() > 1 || layouts.size() == 1;
      if (shared) {
        entries.insert(entries.end(), key.second.begin(), key.second.end());
        std::sort(entries.begin(), entries.end());
      } else {
        for (const auto& cell : owned_[number][ranks.front()].cells) give_piece(number, ranks.front(), cell);
      }
      if (entries.empty()) continue;
      const auto [known, is_new] = numbers.emplace(std::move(entries), static_cast<std::uint32_t>(plan.bodies.size()));
      if (is_new) plan.bodies.push_back(OwnedBody{known->first});
      for (const auto rank : ranks) {
        plan.ranks[rank].body = known->second;
        plan.ranks[rank].coordinates = layouts[rank].coordinates;
      }
    }
    for (std::uint32_t rank = 0; rank < layouts.size(); ++rank) {
      plan.ranks[rank].pieces = std::move(owned_[number][rank].pieces);
      std::sort(plan.ranks[rank].pieces.begin(), plan.ranks[rank].pieces.end());
    }
    return plan;
  }

  void give_piece(std::uint32_t section, std::uint32_t rank, const OwnedCell& cell) {
    const Holdings& holdings = sections_[section];
    const Grid& grid = holdings.grids[cell.grid];
    Box box = grid.box(holdings.tensors[cell.tensor].shape, grid.part_of(grid.cells[cell.cell].index));
    owned_[section][rank].pieces.push_back(Piece{cell.tensor, std::move(box)});
  }

  const std::vector<Holdings>& sections_;
  const std::vector<SectionPlacement>& placements_;
  const HolderSets& sets_;
  std::uint64_t grain_bytes_;
  std::vector<std::uint64_t> loads_;
  std::vector<std::vector<Shared>> lines_;  // of each set
  std::vector<std::uint64_t> line_bytes_;
  std::vector<std::vector<OwnedByRank>> owned_;  // of each section and rank
  Balance balance_;
};

}  // namespace

PlannedSave decide_ownership(const std::vector<Holdings>& sections, const std::vector<SectionPlacement>& placements,
                             const HolderSets& sets, std::uint64_t grain_bytes) {
  return Owners(sections, placements, sets, grain_bytes).run();
}

}  // namespace vckpt
