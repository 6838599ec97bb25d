#include "launch/sharding.h"

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <tuple>
#include <utility>

#include "schema/checked.h"

namespace vckpt::launch {

namespace {

enum Slot : std::uint32_t { tp_slot, key_value_slot, ep_slot, fsdp_slot, slot_count };

constexpr std::array<std::string_view, 3> adam_states = {"master", "exp_avg", "exp_avg_sq"};

bool is_expert(Split split) { return split == Split::expert_column || split == Split::expert_row; }

// Ranks that hold one key-value head: more than one when there are more tp ranks than heads.
std::uint32_t ranks_per_head(const Model& model, const Parallel& parallel) {
  const auto heads = model.key_value_heads;
  return heads != 0 && parallel.tp > heads && parallel.tp % heads == 0 ? parallel.tp / heads : 1;
}

Coordinates coordinates(const Model& model, const Parallel& parallel, const Position& position) {
  Coordinates coordinates(slot_count);
  coordinates[tp_slot] = position.tp;
  coordinates[key_value_slot] = position.tp / ranks_per_head(model, parallel);
  coordinates[ep_slot] = position.dp % parallel.ep;
  coordinates[fsdp_slot] = position.fsdp;
  return coordinates;
}

std::vector<Cut> cuts_of(const Model& model, const Parallel& parallel, const ModelTensor& tensor) {
  std::vector<Cut> cuts;
  const auto add = [&cuts](std::uint32_t dim, std::uint32_t parts, Slot slot) {
    if (parts > 1) cuts.push_back({dim, parts, slot});
  };
  switch (tensor.split) {
    case Split::none: break;
    case Split::column: add(0, parallel.tp, tp_slot); break;
    case Split::row: add(1, parallel.tp, tp_slot); break;
    case Split::key_value: add(0, parallel.tp / ranks_per_head(model, parallel), key_value_slot); break;
    case Split::expert_column:
    case Split::expert_row:
      add(0, parallel.ep, ep_slot);
      add(tensor.split == Split::expert_column ? 1 : 2, parallel.tp, tp_slot);
      break;
  }
  if (!tensor.spec.shape.empty() && bits(tensor.spec.dtype) % 8 == 0) add(0, parallel.fsdp, fsdp_slot);
  return cuts;
}

TensorSpec state_spec(const TensorSpec& parameter, std::string_view state) {
  return {"state." + parameter.fqn + "." + std::string(state), DType::f32, parameter.shape};
}

// Tensors of one pipeline stage, with their cuts.
struct StageTensor {
  const ModelTensor* tensor;
  std::vector<Cut> cuts;
};

std::vector<StageTensor> stage_tensors(const Model& model, const Parallel& parallel, std::uint32_t stage) {
  std::vector<StageTensor> found;
  for (const auto& tensor : model.tensors) {
    if (stage_of(model, tensor.unit, parallel.pp) == stage) {
      found.push_back({&tensor, cuts_of(model, parallel, tensor)});
    }
  }
  return found;
}

std::shared_ptr<const LayoutBody> model_body(const std::vector<StageTensor>& stage) {
  auto body = std::make_shared<LayoutBody>();
  for (const auto& [tensor, cuts] : stage) {
    body->entries.push_back({static_cast<std::uint32_t>(body->tensors.size()), std::nullopt, cuts, std::nullopt});
    body->tensors.push_back(tensor->spec);
  }
  return body;
}

void add_states(LayoutBody& body, const StageTensor& held, std::optional<Range> range) {
  for (const auto state : adam_states) {
    body.entries.push_back({static_cast<std::uint32_t>(body.tensors.size()), std::nullopt, held.cuts, range});
    body.tensors.push_back(state_spec(held.tensor->spec, state));
  }
}

// Which part of every bucket a rank keeps: of the buckets of expert weights, and of all others.
struct ZeroPart {
  std::uint32_t index = 0;
  std::uint32_t count = 1;
  auto operator<=>(const ZeroPart&) const = default;
};

// A parameter in a bucket. All ranks that cut it give it the room of the largest chunk, so that what lies behind it has
// one offset everywhere and replicas stay replicas.
struct Bucketed {
  const StageTensor* held;
  std::uint64_t room;   // elements of the largest chunk
  std::uint64_t count;  // elements of this rank's chunk
};

Bucketed bucketed(const StageTensor& held, const Coordinates& at) {
  auto box = whole(held.tensor->spec.shape);
  auto largest = box;
  for (const auto& part : held.cuts) {
    box = cut(box, part.dim, part.parts, at[part.slot]);
    largest = cut(largest, part.dim, part.parts, 0);
  }
  return {&held, elements(largest), elements(box)};
}

// Adds the ranges of `part` of the buckets that these parameters form.
void add_ranges(LayoutBody& body, const std::vector<Bucketed>& parameters, ZeroPart part) {
  const auto full = bucket_elements(part.count);
  for (std::size_t begin = 0; begin < parameters.size();) {
    std::uint64_t bucket = 0;
    auto end = begin;
    while (end < parameters.size() && bucket < full) bucket += parameters[end++].room;
    const auto share = divide_up(bucket, part.count);
    const auto first = share * part.index;
    const auto last = first + share;
    std::uint64_t offset = 0;
    for (; begin < end; ++begin) {
      const auto& [held, room, count] = parameters[begin];
      const auto from = std::max(first, offset);
      const auto to = std::min(last, offset + count);
      // A parameter without elements lies in no part; every rank names it, so that it is not missing.
      if (from < to) add_states(body, *held, Range{from - offset, to - offset});
      if (room == 0) add_states(body, *held, Range{0, 0});
      offset += room;
    }
  }
}

class OptimizerBodies {
 public:
  OptimizerBodies(const Model& model, const Parallel& parallel) : model_(model), parallel_(parallel) {
    for (std::uint32_t stage = 0; stage < parallel.pp; ++stage) {
      stages_.push_back(stage_tensors(model, parallel, stage));
      even_.push_back(even(stages_.back()));
    }
  }

  const std::vector<StageTensor>& stage(std::uint32_t index) const { return stages_[index]; }

  // Ranks that differ only in tp, fsdp and ep share a body when all their chunks have equal sizes.
  std::shared_ptr<const LayoutBody> body(const Position& position) {
    Key key{position.pp, {}, {}, {}};
    auto& [stage, dense, expert, uneven_at] = key;
    if (parallel_.zero) {
      dense = {position.dp * parallel_.cp + position.cp, parallel_.dp * parallel_.cp};
      expert = {position.dp / parallel_.ep * parallel_.cp + position.cp, parallel_.dp / parallel_.ep * parallel_.cp};
      if (!even_[stage]) uneven_at = coordinates(model_, parallel_, position);
    }
    auto& body = bodies_[key];
    if (!body) body = make(key, coordinates(model_, parallel_, position));
    return body;
  }

 private:
  using Key = std::tuple<std::uint32_t, ZeroPart, ZeroPart, Coordinates>;

  static bool even(const std::vector<StageTensor>& stage) {
    for (const auto& [tensor, cuts] : stage) {
      auto sizes = tensor->spec.shape;
      for (const auto& cut : cuts) {
        if (sizes[cut.dim] % cut.parts != 0) return false;
        sizes[cut.dim] /= cut.parts;
      }
    }
    return true;
  }

  std::shared_ptr<const LayoutBody> make(const Key& key, const Coordinates& at) const {
    const auto& [stage, dense, expert, uneven_at] = key;
    auto body = std::make_shared<LayoutBody>();
    if (!parallel_.zero) {
      for (const auto& held : stages_[stage]) add_states(*body, held, std::nullopt);
      return body;
    }
    std::vector<Bucketed> dense_parameters;
    std::vector<Bucketed> expert_parameters;
    for (const auto& held : stages_[stage]) {
      (is_expert(held.tensor->split) ? expert_parameters : dense_parameters).push_back(bucketed(held, at));
    }
    add_ranges(*body, dense_parameters, dense);
    add_ranges(*body, expert_parameters, expert);
    return body;
  }

  const Model& model_;
  const Parallel& parallel_;
  std::vector<std::vector<StageTensor>> stages_;
  std::vector<bool> even_;
  std::map<Key, std::shared_ptr<const LayoutBody>> bodies_;
};

}  // namespace

Result<Optimizer> parse_optimizer(std::string_view name) {
  if (name == "adam") return Optimizer::adam;
  if (name == "none") return Optimizer::none;
  return invalid("optimizer '" + std::string(name) + "': there are adam and none");
}

std::uint64_t bucket_elements(std::uint32_t group) {
  return std::max<std::uint64_t>(40'000'000, std::uint64_t{1'000'000} * group);
}

Result<std::vector<SectionPlacement>> shard(const Model& model, const Parallel& parallel, Optimizer optimizer) {
  VCKPT_TRY_VOID(check_fits(model, parallel));
  OptimizerBodies states(model, parallel);
  std::vector<std::shared_ptr<const LayoutBody>> stages;
  for (std::uint32_t stage = 0; stage < parallel.pp; ++stage) stages.push_back(model_body(states.stage(stage)));

  std::vector<SectionPlacement> sections = {{"model", {}}};
  if (optimizer == Optimizer::adam) sections.push_back({"optimizer", {}});
  for (std::uint32_t rank = 0; rank < parallel.world_size(); ++rank) {
    const auto at = position(parallel, Rank{rank});
    const auto here = coordinates(model, parallel, at);
    sections[0].placement.layouts.push_back({stages[at.pp], here});
    if (optimizer == Optimizer::adam) sections[1].placement.layouts.push_back({states.body(at), here});
  }
  return sections;
}

}  // namespace vckpt::launch
