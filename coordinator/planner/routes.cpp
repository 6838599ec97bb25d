#include "coordinator/planner/routes.h"

#include <algorithm>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "schema/checked.h"
#include "schema/digest.h"

namespace vckpt {
namespace {

// What one target box wants of one piece in a batch.
struct Part {
  std::uint32_t piece = 0;   // index into the file's pieces
  std::uint32_t target = 0;  // index into the targets of the piece's tensor
  std::uint64_t bytes = 0;
};

// A run of chunks as it is read in one round, and what leaves the reader.
struct Batch {
  Reading reading;
  std::vector<Part> parts;
  std::vector<std::pair<std::uint32_t, std::uint64_t>> sends;  // other ranks, ascending, and their bytes
  std::uint64_t own_bytes = 0;                                 // charged to the reader
};

std::uint64_t charged(std::uint64_t bytes) { return round_up(bytes, staging_page_bytes); }

class Batches {
 public:
  Batches(const SavePlan& plan, const Wants& wants, const Readings& readings, const HolderSets& sets,
          const std::vector<std::uint64_t>& budgets)
      : plan_(plan), wants_(wants), readings_(readings), sets_(sets), budgets_(budgets) {}

  const TargetIndex& targets(const Batch& batch, const Part& part) const {
    const WantedFile& file = readings_.files[batch.reading.file];
    return wants_.sections[file.section].targets[file.pieces[part.piece].tensor];
  }

  Slice slice(const Batch& batch, const Part& part) const {
    const WantedFile& file = readings_.files[batch.reading.file];
    const PlacedPiece& piece = file.pieces[part.piece];
    Slice slice;
    slice.piece = piece.box;
    slice.piece_offset_bytes = piece.offset_bytes;
    slice.begin_bytes = batch.reading.first_chunk * chunk_bytes;
    slice.end_bytes =
        slice.begin_bytes + chunks_bytes(*file.record, batch.reading.first_chunk, batch.reading.chunk_count);
    slice.target = targets(batch, part).targets()[part.target].box;
    return slice;
  }

  // Takes the next batch off the front of a reader's runs: as long as fits its budget comfortably, at least one chunk.
  Batch take(std::uint32_t reader, std::deque<Reading>& runs) const {
    Reading& run = runs.front();
    const std::uint64_t comfort = budgets_[reader] / 2;
    std::uint64_t count = std::min(comfort / 2, run_bytes_max) / chunk_bytes;   // read, and packed at least once
    if (budgets_[reader] >= (std::uint64_t{1} << 62)) count = run.chunk_count;  // planning without memory
    count = std::clamp<std::uint64_t>(count, 1, run.chunk_count);
    Batch batch = measure(reader, Reading{run.file, run.first_chunk, count, run.set});
    while (count > 1 && !comfortable(reader, batch)) {
      count = divide_up(count, 2);
      batch = measure(reader, Reading{run.file, run.first_chunk, count, run.set});
    }
    run.first_chunk += count;
    run.chunk_count -= count;
    if (run.chunk_count == 0) runs.pop_front();
    return batch;
  }

 private:
  bool comfortable(std::uint32_t reader, const Batch& batch) const {
    if (batch.own_bytes > budgets_[reader] / 2) return false;
    return std::all_of(batch.sends.begin(), batch.sends.end(),
                       [&](const auto& send) { return charged(send.second) <= budgets_[send.first] / 2; });
  }

  Batch measure(std::uint32_t reader, const Reading& reading) const {
    const WantedFile& file = readings_.files[reading.file];
    const auto& tensors = plan_.sections[wants_.sections[file.section].stored].tensors;
    const std::uint64_t begin = reading.first_chunk * chunk_bytes;
    const std::uint64_t bytes = chunks_bytes(*file.record, reading.first_chunk, reading.chunk_count);
    Batch batch{reading, {}, {}, charged(bytes)};
    std::map<std::uint32_t, std::uint64_t> sends;
    std::uint64_t packed_bytes = 0;  // each part once, however many ranks want it
    auto piece = std::partition_point(file.pieces.begin(), file.pieces.end(),
                                      [&](const PlacedPiece& p) { return p.offset_bytes + p.length_bytes <= begin; });
    for (; piece != file.pieces.end() && piece->offset_bytes < begin + bytes; ++piece) {
      const auto number = static_cast<std::uint32_t>(piece - file.pieces.begin());
      const TargetIndex& index = wants_.sections[file.section].targets[piece->tensor];
      for (const auto target : index.touching(piece->box)) {
        Part part{number, target, 0};
        part.bytes = slice_bytes(tensors[piece->tensor], slice(batch, part));
        if (part.bytes == 0) continue;
        bool leaves = false;
        for (const auto rank : sets_.ranks(index.targets()[target].set)) {
          if (rank == reader) continue;
          sends[rank] += part.bytes;
          leaves = true;
        }
        if (leaves) packed_bytes += part.bytes;
        batch.parts.push_back(part);
      }
    }
    batch.own_bytes += charged(packed_bytes);
    batch.sends.assign(sends.begin(), sends.end());
    return batch;
  }

  const SavePlan& plan_;
  const Wants& wants_;
  const Readings& readings_;
  const HolderSets& sets_;
  const std::vector<std::uint64_t>& budgets_;
};

// Writes rounds down as the slices of the ranks.
class Writer {
 public:
  Writer(const Wants& wants, const Readings& readings, const HolderSets& sets, const Batches& batches)
      : wants_(wants), readings_(readings), sets_(sets), batches_(batches) {
    routes_.slices.resize(readings.of_reader.size());
    tensor_numbers_.resize(routes_.slices.size());
    opened_.resize(routes_.slices.size());
  }

  // Rounds ascend; within a round, readers do.
  void write(Round round, std::uint32_t reader, const std::vector<Batch>& batches) {
    LoadSlice& reads = routes_.slices[reader];
    std::map<std::uint32_t, SendSlices> sends;
    std::map<std::uint32_t, ReceiveSlices> receives;
    for (const auto& batch : batches) {
      const auto run = static_cast<std::uint32_t>(reads.reads.size());
      reads.reads.push_back(
          ReadRun{round, file_number(reader, batch.reading), batch.reading.first_chunk, batch.reading.chunk_count});
      for (const auto& part : batch.parts) {
        const TargetBox& target = batches_.targets(batch, part).targets()[part.target];
        Slice slice = batches_.slice(batch, part);
        for (const auto rank : sets_.ranks(target.set)) {
          auto& receive = receives[rank];
          slice.tensor = tensor_number(rank, target.wanted);
          receive.slices.push_back(slice);
          receive.length_bytes += part.bytes;
          if (rank == reader) {
            receive.runs.push_back(run);
            continue;
          }
          auto& send = sends[rank];
          slice.tensor = tensor_number(reader, target.wanted);
          send.slices.push_back(slice);
          send.runs.push_back(run);
        }
      }
    }
    for (auto& [rank, send] : sends) {
      send.round = round;
      send.target = Rank(rank);
      reads.sends.push_back(std::move(send));
    }
    for (auto& [rank, receive] : receives) {
      receive.round = round;
      receive.source = Rank(reader);
      routes_.bytes_delivered += receive.length_bytes;
      if (rank != reader) routes_.bytes_received += receive.length_bytes;
      routes_.slices[rank].receives.push_back(std::move(receive));
    }
  }

  Routes finish(std::uint32_t rounds) {
    for (std::uint32_t rank = 0; rank < routes_.slices.size(); ++rank) {
      LoadSlice& slice = routes_.slices[rank];
      slice.rounds = rounds;
      for (Gap gap : wants_.gaps[rank]) {
        gap.tensor = tensor_number(rank, gap.tensor);
        slice.gaps.push_back(std::move(gap));
      }
      for (const auto& [file, opened] : opened_[rank]) {
        const auto& digests = readings_.files[file].record->chunk_digests;
        if (digests.empty()) continue;
        const auto first = digests.begin() + static_cast<std::ptrdiff_t>(opened.chunks.begin);
        const auto last = digests.begin() + static_cast<std::ptrdiff_t>(opened.chunks.end);
        slice.files[opened.number].file.chunk_digests.assign(first, last);
      }
    }
    return std::move(routes_);
  }

 private:
  std::uint32_t tensor_number(std::uint32_t rank, std::uint32_t wanted) {
    auto& tensors = routes_.slices[rank].tensors;
    const auto [known, is_new] = tensor_numbers_[rank].emplace(wanted, static_cast<std::uint32_t>(tensors.size()));
    if (is_new) tensors.push_back(wants_.tensors[wanted]);
    return known->second;
  }

  // A file that a rank reads from, and from which chunk to which.
  struct Opened {
    std::uint32_t number = 0;
    Range chunks;
  };

  std::uint32_t file_number(std::uint32_t reader, const Reading& reading) {
    auto& files = routes_.slices[reader].files;
    const Range chunks{reading.first_chunk, reading.first_chunk + reading.chunk_count};
    const auto [known, is_new] =
        opened_[reader].emplace(reading.file, Opened{static_cast<std::uint32_t>(files.size()), chunks});
    Opened& opened = known->second;
    if (is_new) {
      const FileRecord& record = *readings_.files[reading.file].record;
      FileRecord file{record.section,      record.rank,       record.index,         record.store,
                      record.header_bytes, record.data_bytes, record.header_digest, {}};
      files.push_back(ReadFile{std::move(file), chunks.begin});
    }
    opened.chunks.begin = std::min(opened.chunks.begin, chunks.begin);
    opened.chunks.end = std::max(opened.chunks.end, chunks.end);
    files[opened.number].first_chunk = opened.chunks.begin;
    return opened.number;
  }

  const Wants& wants_;
  const Readings& readings_;
  const HolderSets& sets_;
  const Batches& batches_;
  Routes routes_;
  std::vector<std::map<std::uint32_t, std::uint32_t>> tensor_numbers_;  // of each rank: wanted -> its number there
  std::vector<std::map<std::uint32_t, Opened>> opened_;                 // of each reader: by file
};

// Fills one round after the other. A rank's first load in a round may take its whole budget; more only half of it, so
// that the next round can be prepared while this one drains.
class Rounds {
 public:
  Rounds(const Batches& batches, const Readings& readings, const std::vector<std::uint64_t>& budgets)
      : batches_(batches), budgets_(budgets), next_(budgets.size()) {
    for (const auto& runs : readings.of_reader) {
      runs_.emplace_back(runs.begin(), runs.end());
      readers_left_ += runs.empty() ? 0 : 1;
    }
  }

  bool done() const { return readers_left_ == 0; }

  // By reader: what it reads in the round. Readers take turns to come first.
  Result<std::map<std::uint32_t, std::vector<Batch>>> fill(std::uint32_t round) {
    footprint_.assign(budgets_.size(), 0);
    std::map<std::uint32_t, std::vector<Batch>> filled;
    for (std::size_t i = 0; i < budgets_.size(); ++i) {
      const auto reader = static_cast<std::uint32_t>((round + i) % budgets_.size());
      std::uint64_t read_bytes = 0;
      while (!runs_[reader].empty() || next_[reader]) {
        if (!next_[reader]) {
          next_[reader] = batches_.take(reader, runs_[reader]);
          VCKPT_TRY_VOID(check_possible(reader, *next_[reader]));
        }
        if (!fits(reader, *next_[reader]) || read_bytes >= round_bytes_max) break;
        read_bytes += next_[reader]->reading.chunk_count * chunk_bytes;
        admit(reader, *next_[reader]);
        filled[reader].push_back(std::move(*next_[reader]));
        next_[reader].reset();
        if (runs_[reader].empty()) --readers_left_;
      }
    }
    return filled;
  }

 private:
  bool fits_at(std::uint32_t rank, std::uint64_t bytes) const {
    const std::uint64_t limit = footprint_[rank] == 0 ? budgets_[rank] : budgets_[rank] / 2;
    return footprint_[rank] <= limit && bytes <= limit - footprint_[rank];
  }

  bool fits(std::uint32_t reader, const Batch& batch) const {
    return fits_at(reader, batch.own_bytes) &&
           std::all_of(batch.sends.begin(), batch.sends.end(),
                       [&](const auto& send) { return fits_at(send.first, charged(send.second)); });
  }

  void admit(std::uint32_t reader, const Batch& batch) {
    footprint_[reader] += batch.own_bytes;
    for (const auto& [rank, bytes] : batch.sends) footprint_[rank] += charged(bytes);
  }

  Result<void> check_possible(std::uint32_t reader, const Batch& batch) const {
    const auto refuse = [&](std::uint32_t rank, std::uint64_t need, const std::string& why) {
      return exhausted("rank " + std::to_string(rank) + " has a staging budget of " + std::to_string(budgets_[rank]) +
                       " bytes and needs " + std::to_string(need) + " " + why);
    };
    if (batch.own_bytes > budgets_[reader]) {
      return refuse(
          reader, batch.own_bytes,
          "to read one chunk and pack what " + std::to_string(batch.sends.size()) + " other ranks want of it");
    }
    for (const auto& [rank, bytes] : batch.sends) {
      if (charged(bytes) > budgets_[rank]) {
        return refuse(rank, charged(bytes), "to receive its part of one chunk from rank " + std::to_string(reader));
      }
    }
    return {};
  }

  const Batches& batches_;
  const std::vector<std::uint64_t>& budgets_;
  std::vector<std::deque<Reading>> runs_;
  std::vector<std::optional<Batch>> next_;
  std::vector<std::uint64_t> footprint_;
  std::size_t readers_left_ = 0;
};

}  // namespace

Result<Routes> plan_routes(const SavePlan& plan, const Wants& wants, const Readings& readings, const HolderSets& sets,
                           const std::vector<std::uint64_t>& staging_bytes) {
  const Batches batches(plan, wants, readings, sets, staging_bytes);
  Rounds rounds(batches, readings, staging_bytes);
  Writer writer(wants, readings, sets, batches);
  std::uint32_t round = 0;
  for (; !rounds.done(); ++round) {
    VCKPT_TRY(const auto filled, rounds.fill(round));
    VCKPT_ASSERT(!filled.empty());
    for (const auto& [reader, admitted] : filled) writer.write(Round(round), reader, admitted);
  }
  return writer.finish(round);
}

}  // namespace vckpt
