#include "coordinator/planner/wants.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "coordinator/planner/cover.h"
#include "coordinator/planner/glob.h"
#include "coordinator/planner/holdings.h"

namespace vckpt {
namespace {

bool is_complex(DType dtype) { return dtype == DType::c32 || dtype == DType::c64 || dtype == DType::c128; }
bool sub_byte(DType dtype) { return bits(dtype) % 8 != 0; }

const Resize* resize_of(const LoadOptions& options, const std::string& fqn) {
  for (const auto& resize : options.resize) {
    if (glob_matches(resize.pattern, fqn)) return &resize;
  }
  return nullptr;
}

// The part of a box that lies within the shape; sizes of 0 when none does.
Box clipped(Box box, const Dims& shape) {
  for (std::size_t d = 0; d < shape.size(); ++d) {
    const auto end = std::min(shape[d], box.offsets[d] + box.sizes[d]);
    box.offsets[d] = std::min(box.offsets[d], shape[d]);
    box.sizes[d] = end > box.offsets[d] ? end - box.offsets[d] : 0;
  }
  return box;
}

// One section that is asked for.
class Resolver {
 public:
  Resolver(const LoadRequest& request, HolderSets& sets, Wants& wants)
      : request_(request), options_(request.options), sets_(sets), wants_(wants) {}

  Result<void> run(const SavePlan& plan, const SectionPlacement& target) {
    VCKPT_TRY(holdings_, gather_holdings(target.section, target.placement, sets_));
    const auto found = std::find_if(plan.sections.begin(), plan.sections.end(),
                                    [&](const auto& section) { return section.section == target.section; });
    stored_ = found == plan.sections.end() ? nullptr : &*found;
    if (stored_ != nullptr) targets_.resize(stored_->tensors.size());
    VCKPT_TRY_VOID(pair_tensors());
    VCKPT_TRY_VOID(add_targets());
    if (stored_ == nullptr) return {};
    VCKPT_TRY_VOID(check_unexpected());
    return finish(static_cast<std::uint32_t>(found - plan.sections.begin()));
  }

 private:
  static constexpr std::uint32_t nothing = 0xFFFFFFFF;
  struct Pair {
    std::uint32_t stored = nothing;
    std::uint32_t wanted = nothing;
    const Resize* resize = nullptr;  // only where the shapes differ
  };

  std::string name_text(std::uint32_t tensor) const {
    return "section '" + holdings_.section + "': tensor '" + holdings_.tensors[tensor].fqn + "'";
  }

  Result<void> pair_tensors() {
    pairs_.resize(holdings_.tensors.size());
    std::vector<std::uint32_t> missing;
    for (std::uint32_t tensor = 0; tensor < pairs_.size(); ++tensor) {
      const std::string& fqn = holdings_.tensors[tensor].fqn;
      if (!asked_for(options_, fqn)) continue;
      const std::string name = stored_name(options_, fqn);
      const auto stored = stored_ == nullptr ? nothing : find(name);
      if (stored == nothing) {
        missing.push_back(tensor);
        wants_.missing.push_back(holdings_.section + ":" + fqn);
        continue;
      }
      used_.insert(stored);
      pairs_[tensor].stored = stored;
      VCKPT_TRY_VOID(check_pair(tensor));
      pairs_[tensor].wanted = static_cast<std::uint32_t>(wants_.tensors.size());
      wants_.tensors.push_back(StoredTensor{holdings_.section, stored_->tensors[stored], fqn});
    }
    if (missing.empty() || options_.missing == Missing::keep) return {};
    return not_found(name_text(missing.front()) + " is wanted by rank " +
                     std::to_string(holdings_.lowest_rank[missing.front()]) + " and not in the checkpoint; " +
                     std::to_string(missing.size()) + " names are missing in this section");
  }

  std::uint32_t find(const std::string& name) const {
    const auto& tensors = stored_->tensors;
    const auto found = std::lower_bound(tensors.begin(), tensors.end(), name,
                                        [](const TensorSpec& spec, const std::string& key) { return spec.fqn < key; });
    return found == tensors.end() || found->fqn != name ? nothing : static_cast<std::uint32_t>(found - tensors.begin());
  }

  Result<void> check_pair(std::uint32_t tensor) {
    const TensorSpec& wanted = holdings_.tensors[tensor];
    const TensorSpec& stored = stored_->tensors[pairs_[tensor].stored];
    const std::string ranks = " (rank " + std::to_string(holdings_.lowest_rank[tensor]) + ")";
    if (wanted.dtype != stored.dtype) {
      const std::string where = name_text(tensor) + " is stored as " + std::string(to_string(stored.dtype)) +
                                " and wanted as " + std::string(to_string(wanted.dtype)) + ranks;
      if (!options_.cast) return invalid(where + "; a cast was not asked for");
      if (is_complex(stored.dtype) && !is_complex(wanted.dtype)) {
        return invalid(where + "; a cast may not drop the imaginary part");
      }
      if (sub_byte(stored.dtype) || sub_byte(wanted.dtype)) return invalid(where + "; sub-byte types are not cast");
    }
    if (wanted.shape == stored.shape) return {};
    const std::string where = name_text(tensor) + " is stored with shape " + to_string(stored.shape) +
                              " and wanted with " + to_string(wanted.shape) + ranks;
    const Resize* resize = resize_of(options_, wanted.fqn);
    if (resize == nullptr) return invalid(where + "; a resize was not asked for");
    if (wanted.shape.size() != stored.shape.size()) return invalid(where + "; the dimensions differ in number");
    pairs_[tensor].resize = resize;
    return {};
  }

  Result<void> add_targets() {
    for (const auto& grid : holdings_.grids) {
      for (const auto& cell : grid.cells) {
        const Coordinates part = grid.part_of(cell.index);
        for (const auto tensor : grid.tensors) {
          const Box box = grid.box(holdings_.tensors[tensor].shape, part);
          if (empty(box)) continue;
          wants_.descriptors += sets_.ranks(cell.set).size();
          VCKPT_TRY_VOID(add_target(tensor, box, cell.set));
        }
      }
    }
    for (const auto& piece : holdings_.pieces) {
      wants_.descriptors += sets_.ranks(piece.set).size();
      for (const auto& box : to_boxes(piece.box, piece.range.value_or(Range{0, elements(piece.box)}))) {
        VCKPT_TRY_VOID(add_target(piece.tensor, box, piece.set));
      }
    }
    return {};
  }

  Result<void> add_target(std::uint32_t tensor, Box box, std::uint32_t set) {
    const Pair& pair = pairs_[tensor];
    if (pair.wanted == nothing) return {};
    if (++target_count_ > descriptors_max) {
      return exhausted(name_text(tensor) + ": more than " + std::to_string(descriptors_max) + " target boxes");
    }
    const TensorSpec& stored = stored_->tensors[pair.stored];
    if (pair.resize != nullptr) {
      const Box target = box;
      box = clipped(std::move(box), stored.shape);
      if (box != target) {
        const bool fits = empty(box) || byte_aligned(stored, box) || box == whole(stored.shape);
        if (!fits) return invalid(name_text(tensor) + ": the common part " + to_string(box) + " ends inside a byte");
        for (const auto rank : sets_.ranks(set)) {
          wants_.gaps[rank].push_back(Gap{pair.wanted, target, box, pair.resize->outside});
        }
      }
      if (empty(box)) return {};
    }
    wants_.needed_bytes += box_bytes(stored.dtype, box) * sets_.ranks(set).size();
    targets_[pair.stored].push_back(TargetBox{std::move(box), pair.wanted, set});
    return {};
  }

  Result<void> check_unexpected() {
    std::size_t count = 0;
    for (std::uint32_t stored = 0; stored < stored_->tensors.size(); ++stored) {
      const std::string& fqn = stored_->tensors[stored].fqn;
      if (used_.contains(stored) || !asked_for(options_, fqn)) continue;
      ++count;
      wants_.unexpected.push_back(holdings_.section + ":" + fqn);
    }
    if (count == 0 || options_.unexpected == Unexpected::ignore) return {};
    return invalid("section '" + holdings_.section + "': tensor '" +
                   wants_.unexpected[wants_.unexpected.size() - count].substr(holdings_.section.size() + 1) +
                   "' is in the checkpoint and no rank wants it; " + std::to_string(count) +
                   " names are unexpected in this section");
  }

  // One rank must not want one box twice: receivers tell their targets apart by box.
  Result<void> check_twice(std::uint32_t stored, const std::vector<TargetBox>& targets) const {
    const auto key = [](const TargetBox& target) { return std::tie(target.box, target.wanted); };
    std::vector<const TargetBox*> sorted;
    for (const auto& target : targets) sorted.push_back(&target);
    std::sort(sorted.begin(), sorted.end(), [&](const auto* a, const auto* b) { return key(*a) < key(*b); });
    for (std::size_t i = 1; i < sorted.size(); ++i) {
      for (std::size_t j = i; j-- > 0 && key(*sorted[j]) == key(*sorted[i]);) {
        Ranks both;
        const Ranks& one = sets_.ranks(sorted[j]->set);
        const Ranks& other = sets_.ranks(sorted[i]->set);
        std::set_intersection(one.begin(), one.end(), other.begin(), other.end(), std::back_inserter(both));
        if (both.empty()) continue;
        return invalid("section '" + holdings_.section + "': tensor '" + stored_->tensors[stored].fqn + "': rank " +
                       std::to_string(both.front()) + " wants " + to_string(sorted[i]->box) + " twice");
      }
    }
    return {};
  }

  Result<void> finish(std::uint32_t stored_number) {
    Wants::Section section{stored_number, {}};
    for (std::uint32_t stored = 0; stored < targets_.size(); ++stored) {
      VCKPT_TRY_VOID(check_twice(stored, targets_[stored]));
      std::vector<Box> boxes;
      for (const auto& target : targets_[stored]) boxes.push_back(target.box);
      wants_.unique_bytes += box_bytes(stored_->tensors[stored].dtype, Box{{0}, {union_elements(std::move(boxes))}});
      section.targets.emplace_back(std::move(targets_[stored]));
    }
    wants_.sections.push_back(std::move(section));
    return {};
  }

  const LoadRequest& request_;
  const LoadOptions& options_;
  HolderSets& sets_;
  Wants& wants_;
  Holdings holdings_;
  const SectionPlan* stored_ = nullptr;
  std::vector<Pair> pairs_;  // of each wanted tensor
  std::set<std::uint32_t> used_;
  std::vector<std::vector<TargetBox>> targets_;  // of each stored tensor
  std::uint64_t target_count_ = 0;
};

}  // namespace

TargetIndex::TargetIndex(std::vector<TargetBox> targets) : targets_(std::move(targets)) {
  if (targets_.empty()) return;
  std::size_t best = 0;
  for (std::size_t dim = 0; dim < targets_.front().box.sizes.size(); ++dim) {
    std::vector<std::uint64_t> offsets;
    for (const auto& target : targets_) offsets.push_back(target.box.offsets[dim]);
    std::sort(offsets.begin(), offsets.end());
    const auto distinct = static_cast<std::size_t>(std::unique(offsets.begin(), offsets.end()) - offsets.begin());
    if (distinct > best) {
      best = distinct;
      dim_ = dim;
    }
  }
  if (targets_.front().box.sizes.empty()) return;
  std::stable_sort(targets_.begin(), targets_.end(),
                   [&](const TargetBox& a, const TargetBox& b) { return a.box.offsets[dim_] < b.box.offsets[dim_]; });
  std::uint64_t end = 0;
  for (const auto& target : targets_) {
    end = std::max(end, target.box.offsets[dim_] + target.box.sizes[dim_]);
    end_max_.push_back(end);
  }
}

std::vector<std::uint32_t> TargetIndex::touching(const Box& box) const {
  std::vector<std::uint32_t> found;
  std::size_t i = 0;
  std::size_t last = targets_.size();
  if (!end_max_.empty()) {
    const std::uint64_t begin = box.offsets[dim_];
    const std::uint64_t end = begin + box.sizes[dim_];
    i = static_cast<std::size_t>(std::upper_bound(end_max_.begin(), end_max_.end(), begin) - end_max_.begin());
    const auto after = std::partition_point(targets_.begin(), targets_.end(),
                                            [&](const TargetBox& t) { return t.box.offsets[dim_] < end; });
    last = static_cast<std::size_t>(after - targets_.begin());
  }
  for (; i < last; ++i) {
    if (intersect(targets_[i].box, box)) found.push_back(static_cast<std::uint32_t>(i));
  }
  return found;
}

std::string stored_name(const LoadOptions& options, const std::string& wanted) {
  for (const auto& [from, to] : options.rename) {
    if (from == wanted) return to;
  }
  return wanted;
}

bool asked_for(const LoadOptions& options, const std::string& name) {
  return options.only.empty() || std::any_of(options.only.begin(), options.only.end(),
                                             [&](const auto& pattern) { return glob_matches(pattern, name); });
}

Result<Wants> resolve_wants(const SavePlan& plan, const LoadRequest& request, HolderSets& sets) {
  std::map<std::string, std::string> renamed;
  for (const auto& [wanted, stored] : request.options.rename) {
    const auto [known, is_new] = renamed.emplace(wanted, stored);
    if (!is_new && known->second != stored) {
      return invalid("'" + wanted + "' is renamed to both '" + known->second + "' and '" + stored + "'");
    }
  }
  Wants wants;
  wants.gaps.resize(request.staging_bytes.size());
  for (const auto& target : request.targets) {
    Resolver resolver(request, sets, wants);
    VCKPT_TRY_VOID(resolver.run(plan, target));
  }
  std::sort(wants.missing.begin(), wants.missing.end());
  std::sort(wants.unexpected.begin(), wants.unexpected.end());
  return wants;
}

}  // namespace vckpt
