#include "tests/runtime/round_plan.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "tests/support/catch.h"

namespace vckpt::testing {
namespace {

std::size_t random_length(std::mt19937& random) {
  switch (random() % 8) {
    case 0: return 0;
    case 1: return 1;
    case 2: return (256 << 10) + random() % 3 - 1;  // around one frame
    case 3: return random() % (700 << 10);
    default: return random() % 5000;
  }
}

Bytes random_bytes(std::size_t length_bytes, std::mt19937& random) {
  Bytes bytes(length_bytes);
  for (std::size_t i = 0; i < length_bytes; i += sizeof(std::uint32_t)) {
    const auto word = static_cast<std::uint32_t>(random());
    std::memcpy(bytes.data() + i, &word, std::min(sizeof word, length_bytes - i));
  }
  return bytes;
}

// The same bytes as parts of odd lengths, some of them empty.
std::vector<std::span<const std::byte>> in_parts(std::span<const std::byte> bytes) {
  constexpr std::array<std::size_t, 6> lengths = {70'000, 0, 1, 17, 400'000, 3};
  std::vector<std::span<const std::byte>> parts;
  for (std::size_t i = 0; !bytes.empty(); ++i) {
    const auto length = std::min(lengths[i % lengths.size()], bytes.size());
    parts.push_back(bytes.first(length));
    bytes = bytes.subspan(length);
  }
  return parts;
}

// Copies that take `length_bytes` in all, with gaps between their rows; what they span.
std::size_t random_scatter(std::size_t length_bytes, std::mt19937& random, std::vector<Copy>& scatter) {
  std::size_t span_bytes = 0;
  while (length_bytes > 0) {
    Copy copy;
    copy.run_bytes = std::min<std::uint64_t>(length_bytes, 1 + random() % (random() % 2 == 0 ? 16 : 200'000));
    copy.rows = std::min<std::uint64_t>(length_bytes / copy.run_bytes, 1 + random() % 50);
    copy.stride_bytes = static_cast<std::int64_t>(copy.run_bytes + random() % 4);
    copy.data = reinterpret_cast<std::byte*>(span_bytes);  // an offset until the memory is there
    span_bytes += static_cast<std::size_t>(copy.stride_bytes) * copy.rows;
    length_bytes -= copy.run_bytes * copy.rows;
    scatter.push_back(copy);
  }
  return span_bytes;
}

}  // namespace

RoundPlan::RoundPlan(TransportWorld& world, std::mt19937& random) : world_(world), runs_(world.rank_count()) {
  const auto rank_count = static_cast<std::uint32_t>(world.rank_count());
  std::uint32_t round = 0;
  for (unsigned count = 1 + random() % 8; count > 0; --count) {
    round += 1 + random() % 3;
    for (std::uint32_t source = 0; source < rank_count; ++source) {
      for (std::uint32_t target = 0; target < rank_count; ++target) {
        if (source != target && random() % 3 != 0) add_transfer(Round{round}, source, target, random);
      }
    }
  }
}

void RoundPlan::add_transfer(Round round, std::uint32_t source, std::uint32_t target, std::mt19937& random) {
  Transfer transfer{round, source, target, random_bytes(random_length(random), random), {}, {}, {}};
  transfer.source_memory = world_.memory(transfer.bytes.size());
  world_.write(transfer.source_memory, transfer.bytes);
  transfer.target_memory = world_.memory(random_scatter(transfer.bytes.size(), random, transfer.scatter));
  for (Copy& copy : transfer.scatter) {
    copy.data = transfer.target_memory.data() + reinterpret_cast<std::uintptr_t>(copy.data);
  }
  transfers_.push_back(std::move(transfer));
  for (const auto rank : {source, target}) {
    auto& rounds = runs_[rank].rounds;
    if (rounds.empty() || rounds.back() != round) rounds.push_back(round);
  }
}

void RoundPlan::start(std::size_t window, Duration deadline) {
  deadline_ = deadline;
  for (std::uint32_t rank = 0; rank < runs_.size(); ++rank) {
    for (std::size_t i = 0; i < window; ++i) post_next(rank);
  }
}

void RoundPlan::post_next(std::uint32_t rank) {
  RankRun& run = runs_[rank];
  if (run.posted == run.rounds.size()) return;
  const Round round = run.rounds[run.posted++];
  std::vector<Send> sends;
  std::vector<Receive> receives;
  for (const Transfer& transfer : transfers_) {
    if (transfer.round != round) continue;
    if (transfer.source == rank) sends.push_back({Rank{transfer.target}, in_parts(transfer.source_memory)});
    if (transfer.target == rank) receives.push_back({Rank{transfer.source}, transfer.bytes.size(), transfer.scatter});
  }
  world_.rank(rank).post(round, std::move(sends), std::move(receives), deadline_, [this, rank](Result<void> result) {
    ++runs_[rank].done;
    if (!result && !failure_) failure_ = result.error();
    post_next(rank);
  });
}

bool RoundPlan::finished() const {
  return failure_ ||
         std::all_of(runs_.begin(), runs_.end(), [](const RankRun& run) { return run.done == run.rounds.size(); });
}

void RoundPlan::check() {
  if (failure_) FAIL(failure_->message);
  for (const Transfer& transfer : transfers_) {
    const Bytes memory = world_.read(transfer.target_memory);
    std::vector<Copy> copies = transfer.scatter;
    for (Copy& copy : copies) {
      copy.data = const_cast<std::byte*>(memory.data()) + (copy.data - transfer.target_memory.data());
    }
    Bytes arrived(transfer.bytes.size());
    gather(copies, arrived);
    INFO("round " << transfer.round.value << " from " << transfer.source << " to " << transfer.target);
    CHECK(arrived == transfer.bytes);
  }
}

}  // namespace vckpt::testing
