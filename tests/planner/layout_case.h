// Cases from public bug reports as files (layouts/*.json): who holds what at a save, who wants what at a load, and what
// must come of it. Formulas are unrolled into one body per rank.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "coordinator/planner/load_planner.h"
#include "coordinator/planner/save_planner.h"

namespace vckpt {

struct ExpectedPhase {
  std::vector<std::string> outcomes;            // `ok` or names of error codes, any of which will do
  std::vector<std::string> nouns;               // what the message of an error must hold
  std::vector<std::vector<std::string>> words;  // of each list, one
};

struct LayoutCase {
  std::string id;
  bool with_content = false;  // small enough to carry out
  SectionPlacement save;
  std::vector<StoredItem> items;
  std::optional<LoadRequest> load;
  bool exact_needs = true;  // no cast, resize or missing name: every wanted byte is loaded as it is stored
  std::optional<ExpectedPhase> expected_save;
  std::optional<ExpectedPhase> expected_load;  // counts only if the save was taken
  std::map<std::string, std::uint64_t> counts;
  std::optional<std::vector<std::string>> missing;
  std::optional<std::vector<std::string>> unexpected;
  std::optional<std::vector<std::map<std::string, Value>>> expected_items;  // of each rank
};

LayoutCase read_layout_case(const std::string& path);

}  // namespace vckpt
