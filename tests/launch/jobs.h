// Jobs of `vckpt run -- vckpt drill`: real processes that save to one root and load from it.
#pragma once

#include <string>
#include <vector>

#include "tests/launch/program.h"
#include "tests/support/temporary_folder.h"

namespace vckpt::launch {

// The number under a key of a JSON document; fails the test when there is none.
double number(const std::string& json, const std::string& key);

struct Jobs {
  TemporaryFolder folder;
  std::string model;
  std::string optimizer = "adam";
  std::string deadline_s = "60";
  Environment environment = {};  // of all processes

  std::string root() const { return folder.file("root"); }

  // One drill on every rank; `more` are arguments of it.
  Ran run(const std::string& what, int ranks, const std::string& layout,
          const std::vector<std::string>& more = {}) const;
  // A save and a load that must succeed, a load with every byte compared: the report.
  std::string save(int ranks, const std::string& layout, const std::vector<std::string>& more = {}) const;
  std::string load(int ranks, const std::string& layout, const std::vector<std::string>& more = {}) const;
  // Steps of the committed checkpoints, as `ls` lists them.
  std::vector<std::uint64_t> steps() const;
};

}  // namespace vckpt::launch
