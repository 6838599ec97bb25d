// check_stored: a plan and a manifest come from storage; what later steps index with is checked here, once.
#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <tuple>

#include "coordinator/planner/readings.h"
#include "schema/checked.h"
#include "schema/digest.h"

namespace vckpt {
namespace {

Error broken(const SectionPlan& section, const std::string& what) {
  return corrupt("stored plan, section '" + section.section + "': " + what);
}

Result<void> check_body(const SectionPlan& section, const OwnedBody& body, std::vector<std::uint32_t>& parts_min) {
  for (const auto& entry : body.entries) {
    if (entry.tensor >= section.tensors.size())
      return broken(section, "a body names a tensor that is not in its table");
    const TensorSpec& spec = section.tensors[entry.tensor];
    if (entry.range) return broken(section, "tensor '" + spec.fqn + "': a body has a range");
    if (entry.box && !check_box(*entry.box, spec.shape)) {
      return broken(section, "tensor '" + spec.fqn + "': a box leaves the tensor");
    }
    for (const auto& step : entry.cuts) {
      if (step.parts == 0 || step.dim >= spec.shape.size()) {
        return broken(section, "tensor '" + spec.fqn + "': a cut that cannot be made");
      }
      if (step.slot >= 4096) return broken(section, "tensor '" + spec.fqn + "': a slot above all bounds");
      if (parts_min.size() <= step.slot) parts_min.resize(step.slot + 1, 0xFFFFFFFF);
      parts_min[step.slot] = std::min(parts_min[step.slot], step.parts);
    }
  }
  return {};
}

Result<void> check_section(const SectionPlan& section) {
  for (std::size_t i = 0; i < section.tensors.size(); ++i) {
    const TensorSpec& spec = section.tensors[i];
    const bool sound = check_fqn(spec.fqn) && check_shape(spec.shape) && shape_bytes(spec.dtype, spec.shape);
    if (!sound) return broken(section, "tensor number " + std::to_string(i) + " is malformed");
    if (i != 0 && section.tensors[i - 1].fqn >= spec.fqn) return broken(section, "its tensors are out of order");
  }
  std::vector<std::vector<std::uint32_t>> parts_min(section.bodies.size());
  for (std::size_t body = 0; body < section.bodies.size(); ++body) {
    VCKPT_TRY_VOID(check_body(section, section.bodies[body], parts_min[body]));
  }
  for (std::size_t rank = 0; rank < section.ranks.size(); ++rank) {
    const RankOwnership& owned = section.ranks[rank];
    for (const auto& piece : owned.pieces) {
      const bool sound = piece.tensor < section.tensors.size() &&
                         check_box(piece.box, section.tensors[piece.tensor].shape) && !empty(piece.box);
      if (!sound) return broken(section, "a piece of rank " + std::to_string(rank) + " is out of bounds");
    }
    if (owned.body == no_body) continue;
    bool sound = owned.body < section.bodies.size() && owned.coordinates.size() >= parts_min[owned.body].size();
    for (std::size_t slot = 0; sound && slot < parts_min[owned.body].size(); ++slot) {
      sound = owned.coordinates[slot] < parts_min[owned.body][slot];
    }
    if (!sound)
      return broken(section, "the body or the coordinates of rank " + std::to_string(rank) + " are out of bounds");
  }
  return {};
}

}  // namespace

Result<void> check_stored(const StoredCheckpoint& stored) {
  const SavePlan& plan = *stored.plan;
  for (std::size_t i = 0; i < plan.sections.size(); ++i) {
    if (plan.sections[i].ranks.size() != plan.world_size()) return broken(plan.sections[i], "another world size");
    if (i != 0 && plan.sections[i - 1].section >= plan.sections[i].section) {
      return broken(plan.sections[i], "sections are out of order");
    }
    VCKPT_TRY_VOID(check_section(plan.sections[i]));
  }
  if (!plan.sections.empty() && plan.world_size() != stored.manifest->world_size) {
    return corrupt("the plan is of " + std::to_string(plan.world_size()) + " ranks, the manifest of " +
                   std::to_string(stored.manifest->world_size));
  }
  const bool written = stored.manifest->plan != Digest{};
  for (const auto& file : stored.manifest->files) {
    const std::uint64_t chunks = divide_up(file.data_bytes, chunk_bytes);
    if (file.chunk_digests.size() != chunks && (written || !file.chunk_digests.empty())) {
      return corrupt("manifest, section '" + file.section + "', rank " + std::to_string(file.rank.value) + ": " +
                     std::to_string(file.chunk_digests.size()) + " digests for " + std::to_string(chunks) + " chunks");
    }
  }
  return {};
}

namespace {

// Entries of a body that give a rank equally many bytes; a body of thousands of tensors has a few such groups.
struct AlikeEntries {
  const Entry* entry = nullptr;
  const TensorSpec* spec = nullptr;
  std::uint64_t count = 0;
};

std::vector<AlikeEntries> alike(const SectionPlan& section, const OwnedBody& body) {
  std::map<std::tuple<DType, Dims, std::optional<Box>, std::vector<Cut>>, AlikeEntries> groups;
  for (const auto& entry : body.entries) {
    const TensorSpec& spec = section.tensors[entry.tensor];
    auto& group = groups[std::tuple(spec.dtype, spec.shape, entry.box, entry.cuts)];
    group.entry = &entry;
    group.spec = &spec;
    ++group.count;
  }
  std::vector<AlikeEntries> found;
  for (const auto& [key, group] : groups) found.push_back(group);
  return found;
}

// data_bytes(file_pieces(section, rank)), without listing the pieces.
std::uint64_t owned_bytes(const SectionPlan& section, const RankOwnership& owned,
                          const std::vector<std::vector<AlikeEntries>>& bodies) {
  std::uint64_t bytes = 0;
  for (const auto& piece : owned.pieces) bytes += box_bytes(section.tensors[piece.tensor].dtype, piece.box);
  if (owned.body == no_body) return bytes;
  for (const auto& group : bodies[owned.body]) {
    Box box = group.entry->box.value_or(whole(group.spec->shape));
    for (const auto& step : group.entry->cuts) box = cut(box, step.dim, step.parts, owned.coordinates[step.slot]);
    bytes += box_bytes(group.spec->dtype, box) * group.count;
  }
  return bytes;
}

}  // namespace

Result<Manifest> expected_manifest(const SavePlan& plan, const CheckpointId& id) {
  Manifest manifest;
  manifest.id = id;
  manifest.world_size = plan.world_size();
  for (const auto& section : plan.sections) {
    VCKPT_TRY_VOID(check_section(section));
    std::vector<std::vector<AlikeEntries>> bodies;
    for (const auto& body : section.bodies) bodies.push_back(alike(section, body));
    for (std::uint32_t rank = 0; rank < section.ranks.size(); ++rank) {
      FileRecord file;
      file.section = section.section;
      file.rank = Rank(rank);
      file.data_bytes = owned_bytes(section, section.ranks[rank], bodies);
      if (file.data_bytes != 0) manifest.files.push_back(std::move(file));
    }
  }
  return manifest;
}

}  // namespace vckpt
