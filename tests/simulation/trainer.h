// The memory of one simulated rank. What it holds is a function of section, tensor, place in the tensor and a version,
// so that every byte of a loaded checkpoint can be compared, and a mixture of two versions is seen.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "coordinator/planner/save_planner.h"
#include "schema/item.h"
#include "worker/tensor_table.h"

namespace vckpt {

using Version = std::uint64_t;

constexpr std::size_t documents = 17;  // elements of the splittable item

class Trainer {
 public:
  Trainer(const std::vector<SectionPlacement>& sections, Rank rank, std::uint32_t ranks);

  void fill(Version version);
  // Memory as it never is after a load.
  void wreck();
  // What is held of this version's state, with its items.
  std::shared_ptr<const TensorTable> table(Version version);
  // Names of the pieces that do not hold this version's bytes.
  std::vector<std::string> differences(Version version) const;
  // Items as a load of this version on this rank gives them.
  std::vector<Item> items(Version version) const;

  std::uint64_t held_bytes() const;

 private:
  struct Piece {
    std::string section;
    TensorSpec spec;
    Entry entry;
    Held held;
    std::vector<std::byte> bytes;
  };
  static std::vector<std::byte> content(const Piece& piece, Version version);

  Rank rank_;
  std::uint32_t ranks_;
  std::vector<std::pair<std::string, Coordinates>> sections_;
  std::vector<Piece> pieces_;
  std::shared_ptr<const TensorTable> previous_;
};

}  // namespace vckpt
