#include "coordinator/planner/holdings.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "coordinator/planner/cover.h"
#include "schema/checked.h"

namespace vckpt {
namespace {

std::string section_text(const std::string& section) { return "section '" + section + "'"; }

// One entry of one body, as a holder of a tensor.
struct Holder {
  std::uint32_t body = 0;
  std::uint32_t entry = 0;
};

std::uint64_t body_hash(const LayoutBody& body) {
  std::uint64_t hash = body.tensors.size();
  const auto mix = [&](std::uint64_t number) { hash = (hash ^ number) * 0x9E3779B97F4A7C15 + (hash >> 29); };
  for (const auto& spec : body.tensors) {
    mix(std::hash<std::string>{}(spec.fqn));
    for (const auto size : spec.shape) mix(size);
  }
  for (const auto& entry : body.entries) {
    mix(entry.tensor);
    for (const auto& step : entry.cuts) mix(step.parts);
    if (entry.range) mix(entry.range->begin);
    if (entry.range) mix(entry.range->end);
    if (!entry.box) continue;
    for (const auto offset : entry.box->offsets) mix(offset);
    for (const auto size : entry.box->sizes) mix(size);
  }
  return hash;
}

class Gatherer {
 public:
  Gatherer(const Placement& placement, HolderSets& sets, Holdings& holdings)
      : placement_(placement), sets_(sets), holdings_(holdings) {}

  Result<void> run() {
    find_bodies();
    VCKPT_TRY_VOID(check_layouts());
    VCKPT_TRY_VOID(make_table());
    list_holders();
    for (std::uint32_t tensor = 0; tensor < holders_.size(); ++tensor) {
      if (holders_[tensor].empty() || join_grid(tensor)) continue;
      VCKPT_TRY_VOID(enumerate(tensor));
    }
    return {};
  }

 private:
  // Bodies are told apart by content: callers may give equal bodies as different objects.
  void find_bodies() {
    std::unordered_map<const LayoutBody*, std::uint32_t> by_pointer;
    std::unordered_multimap<std::uint64_t, std::uint32_t> by_hash;
    for (std::uint32_t rank = 0; rank < placement_.layouts.size(); ++rank) {
      const LayoutBody* body = placement_.layouts[rank].body.get();
      auto known = by_pointer.find(body);
      if (known == by_pointer.end()) {
        const std::uint64_t hash = body_hash(*body);
        const auto [first, last] = by_hash.equal_range(hash);
        const auto same = std::find_if(first, last, [&](const auto& other) { return *bodies_[other.second] == *body; });
        const auto number = same == last ? static_cast<std::uint32_t>(bodies_.size()) : same->second;
        if (same == last) {
          bodies_.push_back(body);
          ranks_of_body_.emplace_back();
          by_hash.emplace(hash, number);
        }
        known = by_pointer.emplace(body, number).first;
      }
      holdings_.body_of.push_back(known->second);
      ranks_of_body_[known->second].push_back(rank);
    }
  }

  // Whether coordinates only decide which part is taken, so that bounds need no look at boxes.
  static bool simple(const LayoutBody& body) {
    const auto plain = [](const Entry& entry) { return !entry.range || entry.cuts.empty(); };
    const auto bytewise = [](const TensorSpec& spec) { return bits(spec.dtype) % 8 == 0; };
    return std::all_of(body.entries.begin(), body.entries.end(), plain) &&
           std::all_of(body.tensors.begin(), body.tensors.end(), bytewise);
  }

  Result<void> check_rank(std::uint32_t rank) const {
    const auto checked = check_layout(placement_.layouts[rank]);
    if (checked) return {};
    return checked.error().with_context(section_text(holdings_.section) + ", rank " + std::to_string(rank));
  }

  Result<void> check_layouts() const {
    for (std::uint32_t body = 0; body < bodies_.size(); ++body) {
      const auto& ranks = ranks_of_body_[body];
      VCKPT_TRY_VOID(check_rank(ranks.front()));
      const bool is_simple = simple(*bodies_[body]);
      std::vector<std::uint32_t> parts_min;
      for (const auto& entry : bodies_[body]->entries) {
        for (const auto& step : entry.cuts) {
          if (parts_min.size() <= step.slot) parts_min.resize(step.slot + 1, 0xFFFFFFFF);
          parts_min[step.slot] = std::min(parts_min[step.slot], step.parts);
        }
      }
      std::set<Coordinates> seen;
      for (const auto rank : ranks) {
        const Coordinates& coordinates = placement_.layouts[rank].coordinates;
        bool within = coordinates.size() >= parts_min.size();
        for (std::size_t slot = 0; within && slot < parts_min.size(); ++slot)
          within = coordinates[slot] < parts_min[slot];
        if (within && (is_simple || !seen.insert(coordinates).second)) continue;
        VCKPT_TRY_VOID(check_rank(rank));
      }
    }
    return {};
  }

  Result<void> make_table() {
    std::map<std::string_view, std::pair<const TensorSpec*, std::uint32_t>> table;
    for (std::uint32_t body = 0; body < bodies_.size(); ++body) {
      const std::uint32_t rank = ranks_of_body_[body].front();
      for (const auto& spec : bodies_[body]->tensors) {
        const auto [known, is_new] = table.emplace(spec.fqn, std::pair(&spec, rank));
        if (is_new || *known->second.first == spec) continue;
        return invalid(section_text(holdings_.section) + ": tensor '" + spec.fqn + "' is " +
                       std::string(to_string(known->second.first->dtype)) + " " +
                       to_string(known->second.first->shape) + " on rank " + std::to_string(known->second.second) +
                       " and " + std::string(to_string(spec.dtype)) + " " + to_string(spec.shape) + " on rank " +
                       std::to_string(rank));
      }
    }
    if (table.size() > tensors_max) {
      return exhausted(section_text(holdings_.section) + " has " + std::to_string(table.size()) + " tensors; at most " +
                       std::to_string(tensors_max));
    }
    std::unordered_map<std::string_view, std::uint32_t> numbers;
    for (const auto& [fqn, spec] : table) {
      numbers.emplace(fqn, static_cast<std::uint32_t>(holdings_.tensors.size()));
      holdings_.tensors.push_back(*spec.first);
      holdings_.lowest_rank.push_back(spec.second);
    }
    for (const auto* body : bodies_) {
      auto& ids = tensor_ids_.emplace_back();
      for (const auto& spec : body->tensors) ids.push_back(numbers.at(spec.fqn));
    }
    return {};
  }

  void list_holders() {
    holders_.resize(holdings_.tensors.size());
    for (std::uint32_t body = 0; body < bodies_.size(); ++body) {
      const auto& entries = bodies_[body]->entries;
      for (std::uint32_t entry = 0; entry < entries.size(); ++entry) {
        holders_[tensor_ids_[body][entries[entry].tensor]].push_back(Holder{body, entry});
      }
    }
  }

  const Entry& entry_of(const Holder& holder) const { return bodies_[holder.body]->entries[holder.entry]; }

  // Cuts into one part say nothing and are left out.
  static std::pair<std::vector<GridCut>, std::vector<std::uint32_t>> signature(const Entry& entry) {
    std::pair<std::vector<GridCut>, std::vector<std::uint32_t>> found;
    for (const auto& step : entry.cuts) {
      if (step.parts == 1) continue;
      found.first.push_back(GridCut{step.dim, step.parts});
      found.second.push_back(step.slot);
    }
    return found;
  }

  // Whether the tensor is a grid; if so it is in one now.
  bool join_grid(std::uint32_t tensor) {
    Grid grid;
    for (const auto& holder : holders_[tensor]) {
      const Entry& entry = entry_of(holder);
      if (entry.box || entry.range) return false;
      auto [cuts, slots] = signature(entry);
      if (grid.members.empty()) grid.cuts = cuts;
      if (grid.cuts != cuts) return false;
      grid.members.push_back(GridMember{holder.body, std::move(slots)});
    }
    const auto [known, is_new] = grid_of_.emplace(std::pair(grid.cuts, grid.members), no_grid);
    if (is_new && fill_cells(grid)) {
      known->second = holdings_.grids.size();
      holdings_.grids.push_back(std::move(grid));
    }
    if (known->second == no_grid) return false;
    holdings_.grids[known->second].tensors.push_back(tensor);
    return true;
  }

  // False when a cell has no holder, or a rank twice: then the pieces are looked at one by one.
  bool fill_cells(Grid& grid) {
    std::uint64_t cell_count = 1;
    for (const auto& step : grid.cuts) {
      const auto product = checked_multiply(cell_count, step.parts);
      if (!product || *product > descriptors_max) return false;
      cell_count = *product;
    }
    std::vector<std::pair<std::uint64_t, std::uint32_t>> held;
    for (const auto& member : grid.members) {
      for (const auto rank : ranks_of_body_[member.body]) {
        std::uint64_t index = 0;
        for (std::size_t i = 0; i < grid.cuts.size(); ++i) {
          index = index * grid.cuts[i].parts + placement_.layouts[rank].coordinates[member.slots[i]];
        }
        held.emplace_back(index, rank);
      }
    }
    std::sort(held.begin(), held.end());
    if (std::adjacent_find(held.begin(), held.end()) != held.end()) return false;
    grid.exclusive = true;
    for (std::size_t i = 0; i < held.size();) {
      const std::uint64_t index = held[i].first;
      Ranks ranks;
      for (; i < held.size() && held[i].first == index; ++i) ranks.push_back(held[i].second);
      grid.exclusive = grid.exclusive && ranks.size() == 1;
      grid.cells.push_back(GridCell{index, sets_.intern(std::move(ranks))});
    }
    return grid.cells.size() == cell_count;
  }

  Result<void> enumerate(std::uint32_t tensor) {
    struct Found {
      Box box;
      std::optional<Range> range;
      std::uint32_t rank = 0;
      auto key() const { return std::tie(box, range); }
    };
    std::vector<Found> found;
    for (const auto& holder : holders_[tensor]) {
      const auto& ranks = ranks_of_body_[holder.body];
      enumerated_ += ranks.size();
      if (enumerated_ > descriptors_max) {
        return exhausted(section_text(holdings_.section) + ": tensor '" + holdings_.tensors[tensor].fqn +
                         "': more than " + std::to_string(descriptors_max) + " irregular pieces");
      }
      for (const auto rank : ranks) {
        Held piece = held(*bodies_[holder.body], entry_of(holder), placement_.layouts[rank].coordinates);
        if (empty(piece.box) || (piece.range && piece.range->begin == piece.range->end)) continue;
        if (piece.range && piece.range->begin == 0 && piece.range->end == elements(piece.box)) piece.range.reset();
        found.push_back(Found{std::move(piece.box), piece.range, rank});
      }
    }
    std::sort(found.begin(), found.end(),
              [](const Found& a, const Found& b) { return a.key() != b.key() ? a.key() < b.key() : a.rank < b.rank; });
    for (std::size_t i = 0; i < found.size();) {
      const Found& first = found[i];
      Ranks ranks;
      for (; i < found.size() && found[i].key() == first.key(); ++i) {
        if (!ranks.empty() && ranks.back() == found[i].rank) {
          return invalid(section_text(holdings_.section) + ": tensor '" + holdings_.tensors[tensor].fqn + "': rank " +
                         std::to_string(found[i].rank) + " gives " + to_string(first.box) +
                         (first.range ? " range " + to_string(*first.range) : "") + " twice");
        }
        ranks.push_back(found[i].rank);
      }
      holdings_.pieces.push_back(HeldPiece{tensor, first.box, first.range, sets_.intern(std::move(ranks))});
    }
    return {};
  }

  static constexpr std::size_t no_grid = SIZE_MAX;

  const Placement& placement_;
  HolderSets& sets_;
  Holdings& holdings_;
  std::vector<const LayoutBody*> bodies_;
  std::vector<Ranks> ranks_of_body_;
  std::vector<std::vector<std::uint32_t>> tensor_ids_;  // of each body: its tensors' numbers in the table
  std::vector<std::vector<Holder>> holders_;            // of each tensor
  std::map<std::pair<std::vector<GridCut>, std::vector<GridMember>>, std::size_t> grid_of_;
  std::uint64_t enumerated_ = 0;
};

std::string piece_text(const HeldPiece& piece, const HolderSets& sets) {
  return "rank " + std::to_string(sets.ranks(piece.set).front()) + " (" + to_string(piece.box) +
         (piece.range ? ", elements " + to_string(*piece.range) : "") + ")";
}

}  // namespace

Coordinates Grid::part_of(std::uint64_t cell_index) const {
  Coordinates part(cuts.size(), 0);
  for (std::size_t i = cuts.size(); i-- > 0;) {
    part[i] = static_cast<std::uint32_t>(cell_index % cuts[i].parts);
    cell_index /= cuts[i].parts;
  }
  return part;
}

Box Grid::box(const Dims& shape, const Coordinates& part) const {
  Box box = whole(shape);
  for (std::size_t i = 0; i < cuts.size(); ++i) box = cut(box, cuts[i].dim, cuts[i].parts, part[i]);
  return box;
}

Entry Grid::entry(std::uint32_t tensor, std::uint32_t body, const Coordinates& coordinates,
                  std::uint64_t cell_index) const {
  const Coordinates part = part_of(cell_index);
  for (const auto& member : members) {
    if (member.body != body) continue;
    bool here = true;
    for (std::size_t i = 0; i < cuts.size(); ++i) here = here && coordinates[member.slots[i]] == part[i];
    if (!here) continue;
    Entry entry;
    entry.tensor = tensor;
    for (std::size_t i = 0; i < cuts.size(); ++i)
      entry.cuts.push_back(Cut{cuts[i].dim, cuts[i].parts, member.slots[i]});
    return entry;
  }
  VCKPT_ASSERT(false && "a holder of a cell is a member of its grid");
}

Result<Holdings> gather_holdings(const std::string& section, const Placement& placement, HolderSets& sets) {
  Holdings holdings;
  holdings.section = section;
  VCKPT_TRY_VOID(Gatherer(placement, sets, holdings).run());
  return holdings;
}

Result<void> check_cover(const Holdings& holdings, const HolderSets& sets) {
  std::vector<bool> covered(holdings.tensors.size(), false);
  for (const auto& grid : holdings.grids) {
    for (const auto tensor : grid.tensors) covered[tensor] = true;
  }
  std::size_t next = 0;
  for (std::uint32_t tensor = 0; tensor < holdings.tensors.size(); ++tensor) {
    const std::size_t first = next;
    std::vector<CoverPiece> pieces;
    for (; next < holdings.pieces.size() && holdings.pieces[next].tensor == tensor; ++next) {
      pieces.push_back(CoverPiece{holdings.pieces[next].box, holdings.pieces[next].range});
    }
    if (covered[tensor]) continue;
    const TensorSpec& spec = holdings.tensors[tensor];
    const auto fault = find_cover_fault(spec.shape, pieces);
    if (!fault) continue;
    const std::string where = section_text(holdings.section) + ": tensor '" + spec.fqn + "' " + to_string(spec.shape);
    if (!fault->overlap) {
      return invalid(where + ": no rank holds " + to_string(fault->box) + "; " + std::to_string(fault->elements) +
                     " of " + std::to_string(elements(whole(spec.shape))) + " elements are missing (listed by rank " +
                     std::to_string(holdings.lowest_rank[tensor]) + ")");
    }
    const HeldPiece* one = &holdings.pieces[first + fault->first_piece];
    const HeldPiece* other = &holdings.pieces[first + fault->second_piece];
    if (sets.ranks(other->set).front() < sets.ranks(one->set).front()) std::swap(one, other);
    return invalid(where + ": " + piece_text(*one, sets) + " and " + piece_text(*other, sets) + " both hold " +
                   to_string(fault->box) + ", " + std::to_string(fault->elements) + " elements in common");
  }
  return {};
}

std::uint64_t piece_bytes(DType dtype, const Box& box, const std::optional<Range>& range) {
  if (!range) return box_bytes(dtype, box);
  return box_bytes(dtype, Box{{0}, {range->end - range->begin}});
}

}  // namespace vckpt
