#include "coordinator/planner/load_planner.h"

#include <algorithm>
#include <string>

#include "coordinator/planner/holder_sets.h"
#include "coordinator/planner/load_items.h"
#include "coordinator/planner/readings.h"
#include "coordinator/planner/routes.h"
#include "coordinator/planner/wants.h"

namespace vckpt {
namespace {

Result<void> check_request(const LoadRequest& request) {
  const std::size_t world = request.staging_bytes.size();
  if (world == 0) return invalid("a load of no ranks");
  if (request.items.size() != world) {
    return invalid("items of " + std::to_string(request.items.size()) + " ranks, budgets of " + std::to_string(world));
  }
  for (std::size_t i = 0; i < request.targets.size(); ++i) {
    const auto& target = request.targets[i];
    VCKPT_TRY_VOID(check_section_name(target.section));
    if (target.placement.layouts.size() != world) {
      return invalid("section '" + target.section + "' has layouts of " +
                     std::to_string(target.placement.layouts.size()) + " ranks, the session has " +
                     std::to_string(world));
    }
    if (i != 0 && request.targets[i - 1].section >= target.section) {
      return invalid("section '" + target.section + "' is given twice or out of order");
    }
  }
  return {};
}

}  // namespace

Result<PlannedLoad> plan_load(const StoredCheckpoint& stored, const LoadRequest& request) {
  VCKPT_TRY_VOID(check_request(request));
  VCKPT_TRY_VOID(check_stored(stored));
  const auto world = static_cast<std::uint32_t>(request.staging_bytes.size());
  HolderSets sets;
  VCKPT_TRY(const auto wants, resolve_wants(*stored.plan, request, sets));
  VCKPT_TRY(auto items, plan_items(*stored.manifest, request));
  VCKPT_TRY(const auto readings, assign_readings(stored, wants, sets, world));
  VCKPT_TRY(auto routes, plan_routes(*stored.plan, wants, readings, sets, request.staging_bytes));
  VCKPT_ASSERT(routes.bytes_delivered == wants.needed_bytes);  // the stored cover is exact
  PlannedLoad planned;
  planned.slices = std::move(routes.slices);
  std::vector<std::string> missing = wants.missing;
  missing.insert(missing.end(), items.missing.begin(), items.missing.end());
  std::sort(missing.begin(), missing.end());
  for (std::uint32_t rank = 0; rank < world; ++rank) {
    LoadSlice& slice = planned.slices[rank];
    slice.id = stored.manifest->id;
    slice.meta = stored.manifest->meta;
    slice.items = std::move(items.of_rank[rank]);
    slice.missing = missing;
    slice.unexpected = wants.unexpected;
  }
  planned.wanted_unique_bytes = wants.unique_bytes;
  planned.storage_bytes_read = readings.bytes;
  planned.bytes_needed = wants.needed_bytes;
  planned.bytes_received = routes.bytes_received;
  planned.descriptors = wants.descriptors;
  planned.most_loaded_read_bytes = readings.most_loaded_bytes;
  planned.mean_read_bytes = static_cast<double>(readings.bytes) / static_cast<double>(world);
  planned.bound_read_bytes = readings.bound_bytes;
  return planned;
}

}  // namespace vckpt
