// A coordinator actor on a disk in memory and virtual time, and workers that speak the protocol by heart: they hold one
// tensor cut over all ranks, write nothing, and send the receipts that their slices ask for.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "coordinator/coordinator_actor.h"
#include "tests/support/memory_storage.h"
#include "tests/support/virtual_clock.h"

namespace vckpt {

// The coordinator's end; what is sent arrives at `deliver` one event later.
class OfficeChannel final : public Channel {
 public:
  explicit OfficeChannel(VirtualClock& clock) : clock_(clock) {}
  void on_frame(FrameHandler handler) override { handler_ = std::move(handler); }
  Result<void> send(const PeerId& peer, Bytes frame) override;
  void drop(const PeerId& peer) override { dropped.push_back(peer); }
  void receive(const PeerId& peer, Bytes frame);

  std::function<void(const PeerId&, const Bytes&)> deliver;
  std::vector<PeerId> dropped;

 private:
  VirtualClock& clock_;
  FrameHandler handler_;
};

struct OfficeWorker {
  explicit OfficeWorker(std::uint32_t of) : rank(of) {}
  std::uint32_t rank;
  Envelope envelope;
  FrameJoiner joiner{1 << 30};
  std::uint64_t messages = 0;
  std::map<std::uint64_t, SaveSlice> slices;
  std::map<std::uint64_t, Message> results;  // Committed, Aborted, Loaded by ordinal
  std::optional<LoadSlice> load;
  std::optional<Error> refused;
  bool joined = false;
};

class Office {
 public:
  static constexpr std::uint64_t bytes_per_rank = 1000;

  Office(VirtualClock& clock, MemoryDisk& disk, std::uint32_t ranks, std::uint64_t seed);

  // Runs until `finished`, at most for a minute.
  bool run(const std::function<bool()>& finished);
  bool start();
  bool join();
  void save(std::uint64_t ordinal, std::uint64_t step);  // asks; repeated every second until there is a result
  bool ended(std::uint64_t ordinal) const;               // for all ranks
  bool committed(std::uint64_t ordinal) const;           // for any rank
  LayoutBody body() const;
  void say(OfficeWorker& worker, Message message, Attempt attempt = {});

  VirtualClock& clock;
  std::uint32_t ranks;
  ProcessClock process;
  OfficeChannel channel;
  MemoryStorage storage;
  VirtualCompute compute;
  std::vector<OfficeWorker> workers;
  std::vector<std::string> lines;
  std::optional<EpochRecord> serving;
  bool exited = false;
  std::optional<Error> error;
  Nonce run_nonce;  // as the workers read it
  std::unique_ptr<CoordinatorActor> coordinator;

 private:
  void hear(OfficeWorker& worker, const EnvelopedMessage& message);
  void repeat();

  std::map<std::uint64_t, std::uint64_t> asked_;  // ordinal -> step
};

}  // namespace vckpt
