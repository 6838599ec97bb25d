// Which non-tensor items each rank of a loading session gets.
#pragma once

#include <string>
#include <vector>

#include "coordinator/planner/load_planner.h"

namespace vckpt {

struct PlannedItems {
  std::vector<std::vector<Item>> of_rank;
  std::vector<std::string> missing;  // sorted, `section:name`, each once
};

// replicated: everybody gets the value. splittable: the parts of all ranks joined in rank order and cut into ceil-sized
// parts over the ranks. per_rank: a rank's own value; on another world size as LoadOptions::per_rank says, where
// `gather` gives a map from the saving rank, in decimal, to its value.
// not_found: wanted and not stored, unless it may be missing. invalid: per_rank items on another world size, unasked.
Result<PlannedItems> plan_items(const Manifest& manifest, const LoadRequest& request);

}  // namespace vckpt
