#include "coordinator/planner/save_planner.h"

#include <algorithm>

#include "coordinator/planner/holdings.h"
#include "coordinator/planner/ownership.h"

namespace vckpt {
namespace {

Result<void> check_sections(const std::vector<SectionPlacement>& sections) {
  for (std::size_t i = 0; i < sections.size(); ++i) {
    VCKPT_TRY_VOID(check_section_name(sections[i].section));
    if (i == 0) continue;
    if (sections[i - 1].section >= sections[i].section) {
      return invalid("section '" + sections[i].section + "' is given twice or out of order");
    }
    const auto count = sections[i].placement.layouts.size();
    if (count != sections.front().placement.layouts.size()) {
      return invalid("section '" + sections[i].section + "' has layouts of " + std::to_string(count) +
                     " ranks, section '" + sections.front().section + "' of " +
                     std::to_string(sections.front().placement.layouts.size()));
    }
  }
  return {};
}

}  // namespace

Result<PlannedSave> plan_save(const std::vector<SectionPlacement>& sections, std::uint64_t grain_bytes) {
  VCKPT_TRY_VOID(check_sections(sections));
  HolderSets sets;
  std::vector<Holdings> holdings;
  for (const auto& section : sections) {
    VCKPT_TRY(auto gathered, gather_holdings(section.section, section.placement, sets));
    VCKPT_TRY_VOID(check_cover(gathered, sets));
    holdings.push_back(std::move(gathered));
  }
  return decide_ownership(holdings, sections, sets, grain_bytes);
}

}  // namespace vckpt
