#include "tests/processes/fault.h"

#include <cstdlib>

namespace vckpt::testing {

FaultyProcesses::FaultyProcesses(const Fault& fault) {
  environment_ = {{"LD_PRELOAD", VCKPT_STORAGE_FAULT},
                  {"FAULT_WHO", fault.who},
                  {"FAULT_CALLS", fault.calls.empty() ? "" : "," + fault.calls + ","},
                  {"FAULT_PATH", fault.path},
                  {"FAULT_AT", std::to_string(fault.at)},
                  {"FAULT_PLACE", fault.after ? "after" : "before"},
                  {"FAULT_ERRNO", std::to_string(fault.error)},
                  {"FAULT_CUT", fault.cut},
                  {"FAULT_MARK", folder_.file("struck")}};
  // The sanitizer's library wants to be the first, which here it is not.
  const auto* options = std::getenv("ASAN_OPTIONS");
  environment_.emplace_back("ASAN_OPTIONS", std::string(options ? options : "") + ":verify_asan_link_order=0");
}

std::string FaultyProcesses::struck() const { return launch::read_file(folder_.file("struck")); }

std::string describe(const Fault& fault) {
  const auto what = !fault.cut.empty() ? "loses its disk"
                    : fault.error == 0 ? "killed"
                                       : "fails with errno " + std::to_string(fault.error);
  return fault.who + " " + what + (fault.after ? " after " : " before ") + "call " + std::to_string(fault.at) + " of " +
         (fault.calls.empty() ? "any" : fault.calls) + " on a path with '" + fault.path + "'";
}

}  // namespace vckpt::testing
