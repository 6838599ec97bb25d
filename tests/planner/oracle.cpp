#include "tests/planner/oracle.h"

#include <algorithm>
#include <set>

namespace vckpt::oracle {
namespace {

// The global row-major indices of a piece, in its own order.
std::vector<std::uint64_t> indices(const Dims& shape, const Box& box) {
  std::vector<std::uint64_t> found{0};
  for (std::size_t d = 0; d < shape.size(); ++d) {
    std::vector<std::uint64_t> next;
    for (const auto index : found) {
      for (std::uint64_t i = 0; i < box.sizes[d]; ++i) next.push_back(index * shape[d] + box.offsets[d] + i);
    }
    found = std::move(next);
  }
  return found;
}

struct HeldElements {
  TensorSpec spec;
  std::uint32_t rank = 0;
  std::vector<std::uint64_t> elements;
};

std::vector<HeldElements> held_elements(const SectionPlacement& section) {
  std::vector<HeldElements> found;
  std::map<std::pair<Dims, Box>, std::vector<std::uint64_t>> known;  // many ranges share a box
  for (std::uint32_t rank = 0; rank < section.placement.layouts.size(); ++rank) {
    const Layout& layout = section.placement.layouts[rank];
    for (const auto& entry : layout.body->entries) {
      const TensorSpec& spec = layout.body->tensors[entry.tensor];
      Box box = entry.box.value_or(whole(spec.shape));
      for (const auto& step : entry.cuts) {
        const std::uint64_t size = box.sizes[step.dim];
        const std::uint64_t chunk = (size + step.parts - 1) / step.parts;
        const std::uint64_t begin = std::min(size, chunk * layout.coordinates[step.slot]);
        box.offsets[step.dim] += begin;
        box.sizes[step.dim] = std::min(chunk, size - begin);
      }
      auto& in_box = known[std::pair(spec.shape, box)];
      if (in_box.empty()) in_box = indices(spec.shape, box);
      auto all = entry.range ? std::vector<std::uint64_t>() : in_box;
      if (entry.range) {
        all.assign(in_box.begin() + static_cast<std::ptrdiff_t>(entry.range->begin),
                   in_box.begin() + static_cast<std::ptrdiff_t>(entry.range->end));
      }
      found.push_back(HeldElements{spec, rank, std::move(all)});
    }
  }
  return found;
}

}  // namespace

bool covers(const SectionPlacement& section) {
  std::map<std::string, TensorSpec> specs;
  for (const auto& layout : section.placement.layouts) {
    for (const auto& spec : layout.body->tensors) {
      if (!(specs.emplace(spec.fqn, spec).first->second == spec)) return false;
    }
  }
  std::map<std::string, std::set<std::vector<std::uint64_t>>> pieces;
  std::set<std::tuple<std::string, std::uint32_t, std::vector<std::uint64_t>>> of_rank;
  for (auto& held : held_elements(section)) {
    if (held.elements.empty()) continue;
    if (!of_rank.emplace(held.spec.fqn, held.rank, held.elements).second) return false;
    pieces[held.spec.fqn].insert(std::move(held.elements));
  }
  for (const auto& [fqn, spec] : specs) {
    std::vector<int> times(elements(whole(spec.shape)), 0);
    for (const auto& piece : pieces[fqn]) {
      for (const auto element : piece) ++times[element];
    }
    if (std::any_of(times.begin(), times.end(), [](int count) { return count != 1; })) return false;
  }
  return true;
}

double bound_bytes(const std::vector<SectionPlacement>& sections) {
  std::map<std::uint32_t, double> bytes_of_mask;
  std::size_t world = 0;
  for (const auto& section : sections) {
    world = section.placement.layouts.size();
    std::map<std::pair<std::string, std::uint64_t>, std::pair<std::uint32_t, double>> masks;
    for (const auto& held : held_elements(section)) {
      for (const auto element : held.elements) {
        auto& [mask, bytes] = masks[std::pair(held.spec.fqn, element)];
        mask |= 1U << held.rank;
        bytes = bits(held.spec.dtype) / 8.0;
      }
    }
    for (const auto& [element, mask] : masks) bytes_of_mask[mask.first] += mask.second;
  }
  double most = 0;
  for (std::uint32_t set = 1; set < (1U << world); ++set) {
    double bytes = 0;
    for (const auto& [mask, amount] : bytes_of_mask) bytes += (mask & ~set) == 0 ? amount : 0;
    most = std::max(most, bytes / __builtin_popcount(set));
  }
  return most;
}

std::string wrong_with_plan(const std::vector<SectionPlacement>& sections, const SavePlan& plan) {
  for (std::size_t s = 0; s < sections.size(); ++s) {
    std::map<std::pair<std::string, std::uint32_t>, std::set<std::uint64_t>> held;
    for (const auto& one : held_elements(sections[s])) {
      held[std::pair(one.spec.fqn, one.rank)].insert(one.elements.begin(), one.elements.end());
    }
    const SectionPlan& section = plan.sections[s];
    std::vector<std::vector<int>> times;
    for (const auto& spec : section.tensors) times.emplace_back(elements(whole(spec.shape)), 0);
    for (std::uint32_t rank = 0; rank < section.ranks.size(); ++rank) {
      for (const auto& piece : file_pieces(section, Rank(rank))) {
        const TensorSpec& spec = section.tensors[piece.tensor];
        const auto& own = held[std::pair(spec.fqn, rank)];
        for (const auto element : indices(spec.shape, piece.box)) {
          if (!own.contains(element))
            return spec.fqn + ": rank " + std::to_string(rank) + " owns what it does not hold";
          ++times[piece.tensor][element];
        }
      }
    }
    for (std::size_t t = 0; t < times.size(); ++t) {
      for (const int count : times[t]) {
        if (count != 1) return section.tensors[t].fqn + ": an element lies in " + std::to_string(count) + " pieces";
      }
    }
  }
  return {};
}

}  // namespace vckpt::oracle
