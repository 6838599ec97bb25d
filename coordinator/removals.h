// Data of aborted attempts on its way out. A removal that fails is tried again at the next ticks; what is left after
// that is swept by the next coordinator on the root.
#pragma once

#include <cstdint>
#include <vector>

#include "coordinator/outbox.h"

namespace vckpt::coordinator {

constexpr int removal_tries_max = 5;

class Removals {
 public:
  void begin(Outbox& out, const CheckpointId& id);
  void on_answer(Outbox& out, const DataRemoved& event);
  void tick(Outbox& out);
  bool empty() const { return removals_.empty(); }

 private:
  struct Removal {
    CheckpointId id;
    Ticket ticket;
    int tries = 0;
    bool failed = false;
  };
  std::vector<Removal> removals_;
};

}  // namespace vckpt::coordinator
