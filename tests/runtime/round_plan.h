// A random plan of rounds among some ranks, its memory in a transport world, and the check that every byte arrived.
#pragma once

#include <map>
#include <optional>
#include <random>
#include <vector>

#include "tests/support/transport_world.h"

namespace vckpt::testing {

class RoundPlan {
 public:
  RoundPlan(TransportWorld& world, std::mt19937& random);

  // Posts every rank's rounds: as many ahead as `window` allows, the next one when one completes. Inside run.
  void start(std::size_t window, Duration deadline);
  // All rounds of all ranks are done, or one has failed. Inside run or settle.
  bool finished() const;
  // Every round succeeded and every target holds what its source held. Inside run.
  void check();

 private:
  struct Transfer {
    Round round;
    std::uint32_t source;
    std::uint32_t target;
    Bytes bytes;
    std::span<std::byte> source_memory;
    std::span<std::byte> target_memory;  // the rows of `scatter` lie in it, with gaps
    std::vector<Copy> scatter;
  };
  struct RankRun {
    std::vector<Round> rounds;  // those it takes part in
    std::size_t posted = 0;
    std::size_t done = 0;
  };

  void add_transfer(Round round, std::uint32_t source, std::uint32_t target, std::mt19937& random);
  void post_next(std::uint32_t rank);

  TransportWorld& world_;
  std::vector<Transfer> transfers_;
  std::vector<RankRun> runs_;
  Duration deadline_{};
  std::optional<Error> failure_;
};

}  // namespace vckpt::testing
