// One rank's part of a save: the slice of the plan that it is sent, whether a receipt is what the slice asked for, and
// the committed truth that all receipts make together. Pure functions of the plan.
#pragma once

#include <string>
#include <vector>

#include "coordinator/planner/save_planner.h"
#include "schema/manifest.h"
#include "schema/message.h"
#include "schema/plan.h"
#include "schema/report.h"

namespace vckpt::coordinator {

// Sections in which the rank owns nothing are left out.
std::vector<SectionSlice> section_slices(const SavePlan& plan, Rank rank);

// The folders of an attempt: data/<id> and, for each section, one for every 1024 ranks.
std::vector<std::string> attempt_folders(const SavePlan& plan, const CheckpointId& id, std::uint32_t world_size);

// corrupt, naming section and numbers: other files, sizes or digest counts than the plan has for this rank; other items
// than `asked`, or values without the digest that was offered.
Result<void> check_receipt(const SavePlan& plan, Rank rank, const std::vector<ItemOffer>& asked,
                           const Receipt& receipt);

// `receipts` by rank, all checked.
Manifest make_manifest(const CheckpointId& id, const Digest& plan, const std::string& meta,
                       const std::vector<Receipt>& receipts);
std::vector<SectionSummary> summarize(const SavePlan& plan, const Manifest& manifest);

// The job's part of a report.
Report save_report(const Balance& balance, const std::vector<Receipt>& receipts, double plan_seconds);
double ratio(double value, double base);  // 1 when there is nothing to compare

}  // namespace vckpt::coordinator
