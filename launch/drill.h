// `vckpt drill`: a rank of a training job without a training framework. It holds the tensors of a model in a layout,
// saves or loads them, and compares every byte. Runs under any launcher.
#pragma once

#include <cstdint>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "schema/result.h"

namespace vckpt::launch {

struct DrillArguments {
  std::string what;  // `save` or `load`
  std::string root;
  std::vector<std::string> model;
  std::string layout;
  std::string optimizer = "none";
  std::optional<std::uint64_t> step;
  std::uint32_t saves = 1;                     // steps `step`, `step` + 1, ...
  std::uint32_t failures_max = 0;              // so many saves in a row may fail, and the next is tried
  std::optional<std::uint64_t> staging_bytes;  // default: the environment's; 0: the worker's choice
  double deadline_s = 120;
  bool verify = false;  // after a load compare every byte; after a save load it, and compare
  std::string die;      // `RANK@call`, `RANK@staged`: that rank kills itself there
  std::string report;
  bool json = false;
};

// exit_ok; exit_check_failed when a byte is not the saved one (a line says which). Rank 0 prints the report of the last
// save; of several, every rank says each that it was told is durable, on `out`, and each that failed, on `err`.
Result<int> drill(const DrillArguments& arguments, std::ostream& out, std::ostream& err);

}  // namespace vckpt::launch
