// The memory of one rank of a model: a buffer for each piece it holds, described to a worker, filled and checked.
#pragma once

#include <vckpt/worker.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "coordinator/planner/save_planner.h"
#include "launch/content.h"
#include "schema/result.h"

namespace vckpt::launch {

class HeldState {
 public:
  // What `rank` holds of `sections`. Every byte is 0xA5, which is nobody's true content.
  HeldState(const std::vector<SectionPlacement>& sections, Rank rank);

  // The true content of all pieces, and an item `step` in section `model`.
  void fill(const Content& content, Step step);
  // The first piece and byte that differ, naming section, fqn and box; nothing when all is true.
  std::optional<std::string> first_difference(const Content& content, Step step) const;

  State& state() { return state_; }
  std::uint64_t bytes() const;

 private:
  struct Piece {
    std::string section;
    TensorSpec spec;
    Held held;
    std::unique_ptr<std::byte[]> memory;
    std::uint64_t length_bytes = 0;
  };

  std::vector<Piece> pieces_;
  State state_;
};

}  // namespace vckpt::launch
