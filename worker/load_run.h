// One rank's part of a load, in the rounds of its LoadSlice: reads runs of chunks into staging, checks every chunk
// against its digest before a byte leaves it, packs what peers want, exchanges, and puts own and received bytes into
// place, cast where types differ. All staging of a round is leased at once, in round order, before anything of it
// starts; rounds are posted in order. So the budget holds and rounds cannot wait for each other in a circle.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "runtime/arena.h"
#include "runtime/compute.h"
#include "runtime/storage.h"
#include "runtime/transport.h"
#include "schema/message.h"
#include "schema/result.h"
#include "worker/load_geometry.h"

namespace vckpt {

constexpr std::size_t rounds_in_flight_max = 4;
constexpr std::size_t reads_in_flight_max = 8;
constexpr std::uint64_t read_chunks_max = 4;  // of one storage read

// Threading: lives on one actor, which owns the seams too; callbacks run there. It keeps itself alive while anything of
// it is in flight; the seams outlive it.
class LoadRun : public std::enable_shared_from_this<LoadRun> {
 public:
  struct Seams {
    Storage& storage;
    Transport& transport;  // begun for this load's generation
    Compute& compute;
    Arena& arena;
  };
  struct Task {
    std::shared_ptr<const LoadSlice> slice;
    std::shared_ptr<const TensorTable> table;
    Rank rank;
    Duration deadline{};  // of the exchange, without movement
  };
  struct Callbacks {
    std::function<void(Phase, std::uint64_t bytes)> moved;
    // Once; the caller's memory is not touched any more.
    std::function<void(Result<LoadReceipt>)> ended;
    std::function<void()> freed;  // all staging was given back: other runs may go on
  };

  LoadRun(Seams seams, Task task, Callbacks callbacks);
  ~LoadRun();

  void start();
  // Staging may be there now.
  void resume();
  // Ends the run with `aborted`.
  void stop();

 private:
  struct RoundWork;
  struct ReadBlock;

  Result<void> prepare();
  void plan_rounds();
  RoundWork& round_work(Round round);
  void pump();
  void admit_rounds();
  void lay_out(RoundWork& work);
  void add_read_blocks(RoundWork& work, std::uint32_t read);
  bool casts(const ReceiveSlices& receive) const;
  void read_blocks();
  void read(RoundWork& work, std::shared_ptr<ReadBlock> block);
  void verify(RoundWork& work, std::shared_ptr<ReadBlock> block);
  void pack(RoundWork& work);
  void add_pack_tasks(RoundWork& work);
  void compute(RoundWork& work, std::function<Result<void>()> task);
  void post_rounds();
  void unpack(RoundWork& work);
  void round_done(RoundWork& work);
  Result<void> place_own(const ReceiveSlices& receive, std::size_t first, std::size_t last,
                         const RoundWork& work) const;
  void move(Phase phase, std::uint64_t bytes);
  void fail(Error error);
  void end_if_quiet();

  Seams seams_;
  Task task_;
  Callbacks callbacks_;
  std::optional<LoadGeometry> geometry_;
  std::vector<std::unique_ptr<RoundWork>> rounds_;  // ascending
  LoadReceipt receipt_;
  std::size_t next_admitted_ = 0;
  std::size_t next_posted_ = 0;
  std::size_t rounds_in_flight_ = 0;
  std::size_t rounds_done_ = 0;
  std::size_t reads_in_flight_ = 0;
  std::size_t tasks_in_flight_ = 0;  // on the processor
  std::size_t posts_in_flight_ = 0;
  std::uint64_t moved_bytes_ = 0;
  bool cancelling_ = false;
  bool ended_ = false;
  std::optional<Error> error_;
};

}  // namespace vckpt
