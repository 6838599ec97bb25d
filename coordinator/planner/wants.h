// What the ranks of a loading session want of a checkpoint, in terms of what is stored: names resolved, shapes and
// dtypes checked against the options, boxes cut down to the stored shape.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "coordinator/planner/holder_sets.h"
#include "coordinator/planner/load_planner.h"
#include "schema/message.h"
#include "schema/plan.h"

namespace vckpt {

// A box of a stored tensor that all ranks of a set want under one name. Not empty.
struct TargetBox {
  Box box;
  std::uint32_t wanted = 0;  // index into Wants::tensors
  std::uint32_t set = 0;
};

// The targets of one stored tensor, found by box: sorted along the dimension that tells them apart best.
class TargetIndex {
 public:
  explicit TargetIndex(std::vector<TargetBox> targets);
  const std::vector<TargetBox>& targets() const { return targets_; }
  // Indices of the targets that have elements in common with the box, ascending.
  std::vector<std::uint32_t> touching(const Box& box) const;

 private:
  std::vector<TargetBox> targets_;
  std::size_t dim_ = 0;
  std::vector<std::uint64_t> end_max_;  // of targets 0..i along dim_
};

struct Wants {
  std::vector<StoredTensor> tensors;  // a stored tensor under one wanted name
  struct Section {
    std::uint32_t stored = 0;          // index into SavePlan::sections
    std::vector<TargetIndex> targets;  // of each stored tensor
  };
  std::vector<Section> sections;        // those asked for that are stored
  std::vector<std::vector<Gap>> gaps;   // of each rank; `tensor` indexes `tensors`
  std::vector<std::string> missing;     // sorted, `section:fqn`
  std::vector<std::string> unexpected;  // likewise
  std::uint64_t unique_bytes = 0;       // stored bytes that somebody wants, once
  std::uint64_t needed_bytes = 0;       // stored bytes of all targets
  std::uint64_t descriptors = 0;        // target pieces
};

// not_found: wanted and not stored, unless it may be missing. invalid: as plan_load says.
Result<Wants> resolve_wants(const SavePlan& plan, const LoadRequest& request, HolderSets& sets);

// The stored name for a wanted one.
std::string stored_name(const LoadOptions& options, const std::string& wanted);
// Whether LoadOptions::only lets this name through.
bool asked_for(const LoadOptions& options, const std::string& name);

}  // namespace vckpt
