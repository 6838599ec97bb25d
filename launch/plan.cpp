#include "launch/plan.h"

#include <sys/resource.h>

#include <chrono>
#include <map>
#include <memory>
#include <set>

#include "coordinator/layout_table.h"
#include "coordinator/planner/load_planner.h"
#include "coordinator/planner/save_planner.h"
#include "launch/command.h"
#include "launch/model_file.h"
#include "launch/sharding.h"
#include "schema/codec.h"

namespace vckpt::launch {

namespace {

constexpr std::size_t segment_bytes_target = 16 << 20;

double seconds_since(std::chrono::steady_clock::time_point begun) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
}

struct Planned {
  std::uint32_t ranks = 0;
  std::uint64_t sections = 0;
  std::uint64_t bodies = 0;
  std::uint64_t bytes_written = 0;
  std::uint64_t manifest_bytes = 0;
  double plan_seconds = 0;
  double cached_plan_seconds = 0;
  PlannedSave save;
  std::shared_ptr<const Manifest> manifest;
};

// Digests of the bodies, as workers offer them: each once, however many ranks share it.
std::map<const LayoutBody*, Digest> body_digests(const std::vector<SectionPlacement>& sections) {
  std::map<const LayoutBody*, Digest> digests;
  for (const auto& section : sections) {
    for (const auto& layout : section.placement.layouts) {
      auto [found, added] = digests.try_emplace(layout.body.get());
      if (added) found->second = digest(*layout.body);
    }
  }
  return digests;
}

coordinator::PlacementKey placement_key(const std::vector<SectionPlacement>& sections,
                                        const std::map<const LayoutBody*, Digest>& digests) {
  coordinator::PlacementKey key;
  for (const auto& section : sections) {
    auto& held = key.sections.emplace_back(section.section, std::vector<coordinator::PlacementKey::Held>()).second;
    held.reserve(section.placement.layouts.size());
    for (const auto& layout : section.placement.layouts) {
      held.push_back({digests.at(layout.body.get()), layout.coordinates});
    }
  }
  return key;
}

// What the coordinator does when all ranks offer what they offered before.
double time_cached(const std::vector<SectionPlacement>& sections, const PlannedSave& save) {
  const auto digests = body_digests(sections);
  coordinator::PlanCache cache;
  cache.add(placement_key(sections, digests), {save, {}, nullptr});
  const auto begun = std::chrono::steady_clock::now();
  VCKPT_ASSERT(cache.find(placement_key(sections, digests)) != nullptr);
  return seconds_since(begun);
}

Result<Planned> plan_saving(const std::vector<SectionPlacement>& sections, const Parallel& parallel) {
  Planned planned;
  planned.ranks = parallel.world_size();
  planned.sections = sections.size();
  planned.bodies = body_digests(sections).size();
  const auto begun = std::chrono::steady_clock::now();
  VCKPT_TRY(planned.save, plan_save(sections));
  planned.plan_seconds = seconds_since(begun);
  planned.cached_plan_seconds = time_cached(sections, planned.save);
  VCKPT_TRY(auto manifest, expected_manifest(*planned.save.plan, CheckpointId{Epoch{1}, Attempt{1}, Step{1}}));
  for (const auto& file : manifest.files) planned.bytes_written += file.data_bytes;
  planned.manifest_bytes = encode(*planned.save.plan).size();
  for (const auto& segment : split_manifest(manifest, segment_bytes_target)) {
    planned.manifest_bytes += encode(segment).size();
  }
  planned.manifest = std::make_shared<const Manifest>(std::move(manifest));
  return planned;
}

struct PlannedLoading {
  std::uint32_t ranks = 0;
  PlannedLoad load;
  std::uint64_t routes = 0;
  double seconds = 0;
};

Result<PlannedLoading> plan_loading(const Planned& planned, std::vector<SectionPlacement> targets,
                                    const Parallel& parallel, std::uint64_t staging_bytes) {
  PlannedLoading loading;
  loading.ranks = parallel.world_size();
  LoadRequest request;
  request.targets = std::move(targets);
  request.items.resize(loading.ranks);
  request.staging_bytes.assign(loading.ranks, staging_bytes);
  const auto begun = std::chrono::steady_clock::now();
  VCKPT_TRY(loading.load, plan_load({planned.save.plan, planned.manifest}, request));
  loading.seconds = seconds_since(begun);
  for (const auto& slice : loading.load.slices) {
    for (const auto& receive : slice.receives) loading.routes += receive.slices.size();
  }
  return loading;
}

std::uint64_t peak_memory_bytes() {
  struct rusage usage {};
  ::getrusage(RUSAGE_SELF, &usage);
  return static_cast<std::uint64_t>(usage.ru_maxrss) * 1024;
}

double ratio(double a, double b) { return b > 0 ? a / b : 1; }

void print_text(const PlanArguments& arguments, const Planned& planned, const PlannedLoading* loading,
                std::ostream& out) {
  const auto& balance = planned.save.balance;
  const auto most = static_cast<double>(balance.most_loaded_bytes);
  out << "save " << arguments.model.front() << " over " << arguments.layout << ": " << planned.ranks << " ranks, "
      << planned.sections << " sections\n"
      << "  held            " << bytes_text(balance.held_bytes) << " in " << balance.descriptors << " descriptors, "
      << planned.bodies << " layout bodies\n"
      << "  unique          " << bytes_text(balance.unique_bytes) << "\n"
      << "  written         " << bytes_text(planned.bytes_written) << " in " << balance.pieces_written << " pieces\n"
      << "  most loaded     " << bytes_text(balance.most_loaded_bytes) << ": "
      << ratio_text(ratio(most, balance.mean_bytes)) << " of the mean, " << ratio_text(ratio(most, balance.bound_bytes))
      << " of the best possible\n"
      << "  manifest        " << bytes_text(planned.manifest_bytes) << "\n"
      << "  planned in      " << seconds_text(planned.plan_seconds) << ", again in "
      << seconds_text(planned.cached_plan_seconds) << "\n";
  if (loading != nullptr) {
    out << "load over " << arguments.to << ": " << loading->ranks << " ranks\n"
        << "  needed          " << bytes_text(loading->load.bytes_needed) << " in " << loading->load.descriptors
        << " descriptors\n"
        << "  read            " << bytes_text(loading->load.storage_bytes_read) << " from storage\n"
        << "  received        " << bytes_text(loading->load.bytes_received) << " from other ranks, over "
        << loading->routes << " routes\n"
        << "  planned in      " << seconds_text(loading->seconds) << "\n";
  }
  out << "peak memory       " << bytes_text(peak_memory_bytes()) << "\n";
}

void print_json(const Planned& planned, const PlannedLoading* loading, std::ostream& out) {
  const auto& balance = planned.save.balance;
  const auto most = static_cast<double>(balance.most_loaded_bytes);
  Json json;
  json.object().member("ranks", planned.ranks).member("sections", planned.sections);
  json.member("descriptors", balance.descriptors).member("bodies", planned.bodies);
  json.member("pieces", balance.pieces_written).member("unique_bytes", balance.unique_bytes);
  json.member("bytes_written", planned.bytes_written);
  json.member("most_loaded_over_mean", ratio(most, balance.mean_bytes));
  json.member("most_loaded_over_bound", ratio(most, balance.bound_bytes));
  json.member("manifest_bytes", planned.manifest_bytes).member("plan_seconds", planned.plan_seconds);
  json.member("cached_plan_seconds", planned.cached_plan_seconds);
  if (loading != nullptr) {
    json.member("load_ranks", loading->ranks).member("bytes_needed", loading->load.bytes_needed);
    json.member("bytes_received", loading->load.bytes_received);
    json.member("storage_bytes_read", loading->load.storage_bytes_read).member("routes", loading->routes);
    json.member("load_plan_seconds", loading->seconds);
  }
  json.member("peak_memory_bytes", peak_memory_bytes()).end();
  out << json.text() << '\n';
}

}  // namespace

Result<int> plan(const PlanArguments& arguments, std::ostream& out) {
  VCKPT_TRY(const auto source, open_model(arguments.model));
  VCKPT_TRY(const auto optimizer, parse_optimizer(arguments.optimizer));
  VCKPT_TRY(const auto from, parse_parallel(arguments.layout));
  VCKPT_TRY(const auto sections, shard(source.model, from, optimizer));
  std::optional<Parallel> to;
  std::vector<SectionPlacement> targets;
  if (!arguments.to.empty()) {
    VCKPT_TRY(to, parse_parallel(arguments.to));
    VCKPT_TRY(targets, shard(source.model, *to, optimizer));
  }
  VCKPT_TRY(const auto planned, plan_saving(sections, from));
  std::optional<PlannedLoading> loading;
  if (to) {
    VCKPT_TRY(loading, plan_loading(planned, std::move(targets), *to, arguments.staging_bytes));
  }
  arguments.json ? print_json(planned, loading ? &*loading : nullptr, out)
                 : print_text(arguments, planned, loading ? &*loading : nullptr, out);
  return exit_ok;
}

}  // namespace vckpt::launch
