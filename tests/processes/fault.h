// A fault in the storage calls of a real process, by a preloaded library (storage_fault.cpp).
#pragma once

#include <string>

#include "tests/launch/program.h"
#include "tests/support/temporary_folder.h"

namespace vckpt::testing {

constexpr int left_out = -1;  // instead of an errno: the call is not made, and said to have worked

struct Fault {
  std::string who;       // `coordinator`, the number of a rank, or `*`
  std::string calls;     // names of libc, separated by commas; empty: every one that is intercepted
  std::string path;      // a part of it
  int at = 1;            // the first, the second... such call; 0: every one
  bool after = false;    // the call is made, and then it strikes
  int error = 0;         // an errno; 0: the process is killed with SIGKILL
  std::string cut = {};  // a mount point: its disk loses its power, and nothing else happens
};

// Makes processes suffer one fault, and knows whether it struck.
class FaultyProcesses {
 public:
  explicit FaultyProcesses(const Fault& fault);

  const launch::Environment& environment() const { return environment_; }
  // `CALL PATH` of every strike.
  std::string struck() const;

 private:
  TemporaryFolder folder_;
  launch::Environment environment_;
};

std::string describe(const Fault& fault);

}  // namespace vckpt::testing
