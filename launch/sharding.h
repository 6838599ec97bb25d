// What every rank of a job holds of a model: a body per kind of rank, shared, and the coordinates of each rank.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "coordinator/planner/save_planner.h"
#include "launch/model.h"
#include "launch/parallel.h"

namespace vckpt::launch {

enum class Optimizer : std::uint8_t { none, adam };

// `adam`, or `none`; invalid otherwise.
Result<Optimizer> parse_optimizer(std::string_view name);

// Sections of all ranks, sorted by name: `model`, and with adam `optimizer` with `state.<fqn>.master`, `.exp_avg` and
// `.exp_avg_sq` of every parameter, in fp32.
//
// Tensors are cut by tp (and ep) as the model says, then along dimension 0 by fsdp, in ceil-sized chunks; cp and dp
// replicate. Optimizer states are cut like their parameters, or with zero as Megatron's distributed optimizer does: the
// parameters of a stage, as this tp and fsdp rank holds them, form buckets of about bucket_elements; each bucket is
// padded to a multiple of its dp x cp group (for expert weights: of the ranks that hold the same experts) and cut
// evenly over it, without regard to where a parameter ends.
//
// invalid: what check_fits refuses.
Result<std::vector<SectionPlacement>> shard(const Model& model, const Parallel& parallel, Optimizer optimizer);

// Megatron's default: at least 40 M elements, and 1 M per rank of the group.
std::uint64_t bucket_elements(std::uint32_t group);

}  // namespace vckpt::launch
