// Brute force against which the planners are checked: element by element, byte by byte, without any of their code.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "coordinator/planner/load_planner.h"
#include "coordinator/planner/save_planner.h"

namespace vckpt::oracle {

// Whether the ranks' pieces hold every element of every tensor exactly once (replicas count once), no rank gives a
// piece twice and nobody disagrees on a tensor.
bool covers(const SectionPlacement& section);

// L*: the greatest, over all sets R of ranks, of the bytes that only ranks of R hold, by the size of R. Few ranks only.
double bound_bytes(const std::vector<SectionPlacement>& sections);

// What is wrong with a plan for these sections, in words; empty: every element lies in exactly one piece, and its rank
// holds it.
std::string wrong_with_plan(const std::vector<SectionPlacement>& sections, const SavePlan& plan);

// The bytes of a tensor as they are at the save, dense row-major.
std::vector<std::uint8_t> content(const std::string& section, const TensorSpec& spec);

// The data part of every file, by (section, rank).
using Files = std::map<std::pair<std::string, std::uint32_t>, std::vector<std::uint8_t>>;
Files write_files(const SavePlan& plan);

// Carries the load out over the files: reads, sends, receives, round by round. What is wrong, in words; empty: every
// rank got every byte of what it wants, once; every chunk that anybody wants was read once, the others never; no rank's
// footprint passed its budget in any round; counts are as planned.
std::string wrong_with_load(const StoredCheckpoint& stored, const LoadRequest& request, const PlannedLoad& planned);

}  // namespace vckpt::oracle
