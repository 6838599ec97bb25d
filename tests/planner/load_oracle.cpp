// The part of the oracle that carries a load out over bytes.
#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "tests/planner/oracle.h"

namespace vckpt::oracle {
namespace {

// Content in byte geometry: the last dimension counted in bytes, or one flat run where rows end inside a byte.
std::uint64_t linear(const Dims& shape, const Dims& at) {
  std::uint64_t index = 0;
  for (std::size_t d = 0; d < shape.size(); ++d) index = index * shape[d] + at[d];
  return index;
}

// Calls `row(place, length)` with the begin of every innermost row of the box.
template <typename Row>
void for_rows(const Box& box, Row row) {
  if (empty(box)) return;
  Dims at = box.offsets;
  const std::size_t dims = at.size();
  while (true) {
    row(at, box.sizes.back());
    std::size_t d = dims - 1;
    while (true) {
      if (d == 0) return;
      --d;
      if (++at[d] < box.offsets[d] + box.sizes[d]) break;
      at[d] = box.offsets[d];
    }
  }
}

Dims relative(const Dims& at, const Box& box) {
  Dims inside = at;
  for (std::size_t d = 0; d < at.size(); ++d) inside[d] -= box.offsets[d];
  return inside;
}

}  // namespace

std::vector<std::uint8_t> content(const std::string& section, const TensorSpec& spec) {
  std::uint64_t state = std::hash<std::string>{}(section + ":" + spec.fqn) | 1;
  std::vector<std::uint8_t> bytes(box_bytes(spec.dtype, whole(spec.shape)));
  for (auto& byte : bytes) {
    state = state * 6364136223846793005 + 1442695040888963407;
    byte = static_cast<std::uint8_t>(state >> 56);
  }
  return bytes;
}

Files write_files(const SavePlan& plan) {
  Files files;
  for (const auto& section : plan.sections) {
    std::vector<std::vector<std::uint8_t>> contents;
    for (const auto& spec : section.tensors) contents.push_back(content(section.section, spec));
    for (std::uint32_t rank = 0; rank < section.ranks.size(); ++rank) {
      const auto pieces = file_pieces(section, Rank(rank));
      if (pieces.empty()) continue;
      auto& file = files[std::pair(section.section, rank)];
      for (const auto& piece : pieces) {
        const TensorSpec& spec = section.tensors[piece.tensor];
        const Dims shape = to_byte_shape(spec);
        for_rows(to_byte_box(spec, piece.box), [&](const Dims& at, std::uint64_t length) {
          const auto begin = contents[piece.tensor].begin() + static_cast<std::ptrdiff_t>(linear(shape, at));
          file.insert(file.end(), begin, begin + static_cast<std::ptrdiff_t>(length));
        });
      }
    }
  }
  return files;
}

namespace {

constexpr std::uint64_t chunk = 1 << 20;
constexpr std::uint64_t page = 4096;

std::uint64_t pages(std::uint64_t bytes) { return (bytes + page - 1) / page * page; }

// A box that a rank wants, filled as transfers arrive.
struct Target {
  TensorSpec stored;
  std::string section;
  Box box;
  std::vector<std::uint8_t> bytes;
  std::vector<std::uint8_t> times;
};

class Simulation {
 public:
  Simulation(const StoredCheckpoint& stored, const LoadRequest& request, const PlannedLoad& planned)
      : request_(request), planned_(planned), files_(write_files(*stored.plan)), plan_(*stored.plan) {
    targets_.resize(planned.slices.size());
    footprint_.resize(planned.slices.size());
  }

  std::string run() {
    make_targets();
    for (rank_ = 0; rank_ < planned_.slices.size() && wrong_.empty(); ++rank_) {
      check_order();
      read();
      for (const auto& receive : planned_.slices[rank_].receives) take(receive);
      charge_packed();
    }
    if (wrong_.empty() && sends_ != received_transfers_) fail("a transfer is sent and not received");
    check_targets();
    check_chunks();
    check_budgets();
    check_counts();
    return wrong_;
  }

 private:
  void fail(const std::string& what) {
    if (wrong_.empty()) wrong_ = "rank " + std::to_string(rank_) + ": " + what;
  }

  const SectionPlan* section_plan(const std::string& name) const {
    for (const auto& section : plan_.sections) {
      if (section.section == name) return &section;
    }
    return nullptr;
  }

  std::string stored_fqn(const std::string& wanted) const {
    for (const auto& [from, to] : request_.options.rename) {
      if (from == wanted) return to;
    }
    return wanted;
  }

  void make_targets() {
    for (const auto& section : request_.targets) {
      const SectionPlan* stored = section_plan(section.section);
      if (stored == nullptr) continue;
      std::map<std::string, const TensorSpec*> by_fqn;
      for (const auto& spec : stored->tensors) by_fqn.emplace(spec.fqn, &spec);
      for (std::uint32_t rank = 0; rank < section.placement.layouts.size(); ++rank) {
        const Layout& layout = section.placement.layouts[rank];
        for (const auto& entry : layout.body->entries) {
          const Held piece = held(*layout.body, entry, layout.coordinates);
          const std::string wanted = layout.body->tensors[entry.tensor].fqn;
          const auto spec = by_fqn.find(stored_fqn(wanted));
          if (spec == by_fqn.end()) continue;
          const TensorSpec& of_stored = *spec->second;
          for (const auto& box : to_boxes(piece.box, piece.range.value_or(Range{0, elements(piece.box)}))) {
            const auto common = intersect(box, whole(of_stored.shape));
            if (!common) continue;
            const std::uint64_t bytes = elements(to_byte_box(of_stored, *common));
            needed_ += bytes;
            targets_[rank].emplace(std::pair(section.section + ":" + wanted, *common),
                                   Target{of_stored, section.section, *common, std::vector<std::uint8_t>(bytes, 0),
                                          std::vector<std::uint8_t>(bytes, 0)});
          }
        }
      }
    }
  }

  void check_order() {
    const LoadSlice& slice = planned_.slices[rank_];
    const auto by_peer = [](const auto& a, const auto& b, auto peer) {
      return std::pair(a.round, peer(a)) < std::pair(b.round, peer(b));
    };
    for (std::size_t i = 1; i < slice.sends.size(); ++i) {
      if (!by_peer(slice.sends[i - 1], slice.sends[i], [](const auto& s) { return s.target; }))
        fail("sends out of order");
    }
    for (std::size_t i = 1; i < slice.receives.size(); ++i) {
      if (!by_peer(slice.receives[i - 1], slice.receives[i], [](const auto& r) { return r.source; })) {
        fail("receives out of order");
      }
    }
    for (std::size_t i = 1; i < slice.reads.size(); ++i) {
      if (slice.reads[i].round < slice.reads[i - 1].round) fail("reads out of order");
    }
  }

  void charge(Round round, std::uint64_t bytes) {
    if (round.value >= planned_.slices[rank_].rounds) fail("a round past the last one");
    footprint_[rank_][round.value] += pages(bytes);
  }

  void read() {
    const LoadSlice& slice = planned_.slices[rank_];
    for (const auto& run : slice.reads) {
      const ReadFile& file = slice.files[run.file];
      if (run.first_chunk < file.first_chunk) fail("a run before the digests of its file");
      if (file.file.chunk_digests.size() < run.first_chunk - file.first_chunk + run.chunk_count)
        fail("digests missing");
      const std::uint64_t begin = run.first_chunk * chunk;
      const std::uint64_t end = std::min(file.file.data_bytes, begin + run.chunk_count * chunk);
      if (begin >= end) fail("an empty run");
      storage_bytes_ += end - begin;
      charge(run.round, end - begin);
      for (std::uint64_t i = 0; i < run.chunk_count; ++i) {
        auto& reader = chunks_read_[std::tuple(file.file.section, file.file.rank.value, run.first_chunk + i)];
        if (reader++ != 0) fail("a chunk is read twice");
      }
    }
  }

  // Replicas want the same slice of the same run: packed once.
  void charge_packed() {
    std::map<std::uint32_t, std::vector<const Slice*>> packed;  // by run
    for (const auto& send : planned_.slices[rank_].sends) {
      ++sends_;
      for (std::size_t i = 0; i < send.slices.size(); ++i) {
        auto& known = packed[send.runs[i]];
        const auto same = [&](const Slice* other) { return *other == send.slices[i]; };
        if (std::none_of(known.begin(), known.end(), same)) known.push_back(&send.slices[i]);
      }
    }
    for (const auto& [run, slices] : packed) {
      std::uint64_t bytes = 0;
      for (const auto* slice : slices) bytes += slice_bytes(planned_.slices[rank_].tensors[slice->tensor].spec, *slice);
      charge(planned_.slices[rank_].reads[run].round, bytes);
    }
  }

  // What the reader packs for a slice out of one of its runs.
  std::vector<std::uint8_t> pack(const LoadSlice& reader, const Slice& slice, std::uint32_t run, Round round) {
    std::vector<std::uint8_t> packed;
    if (run >= reader.reads.size() || reader.reads[run].round != round) {
      fail("a slice of a run of another round");
      return packed;
    }
    const ReadFile& file = reader.files[reader.reads[run].file];
    const std::uint64_t begin = reader.reads[run].first_chunk * chunk;
    const std::uint64_t end = std::min(file.file.data_bytes, begin + reader.reads[run].chunk_count * chunk);
    if (slice.begin_bytes != begin || slice.end_bytes != end) fail("a slice's bytes are not its run's");
    const auto& data = files_.at(std::pair(file.file.section, file.file.rank.value));
    const TensorSpec& spec = reader.tensors[slice.tensor].spec;
    const Box piece = to_byte_box(spec, slice.piece);
    for (const auto& box : slice_boxes(spec, slice)) {
      for_rows(box, [&](const Dims& at, std::uint64_t length) {
        const std::uint64_t place = slice.piece_offset_bytes + linear(piece.sizes, relative(at, piece));
        if (place < begin || place + length > end) return fail("a slice reaches out of its run");
        for (std::uint64_t i = 0; i < length; ++i) packed.push_back(data[place + i]);
      });
    }
    return packed;
  }

  void take(const ReceiveSlices& receive) {
    const LoadSlice& mine = planned_.slices[rank_];
    const LoadSlice& source = planned_.slices[receive.source.value];
    const bool own = receive.source.value == rank_;
    const SendSlices* send = nullptr;
    const auto place = std::partition_point(source.sends.begin(), source.sends.end(), [&](const SendSlices& s) {
      return std::pair(s.round.value, s.target.value) < std::pair(receive.round.value, rank_);
    });
    if (!own && place != source.sends.end() && place->round == receive.round && place->target.value == rank_) {
      send = &*place;
    }
    if (!own && send == nullptr) return fail("a transfer is received and not sent");
    if (!own && send->slices.size() != receive.slices.size()) return fail("the ends of a transfer differ in slices");
    std::uint64_t bytes = 0;
    for (std::size_t i = 0; i < receive.slices.size(); ++i) {
      const Slice& slice = receive.slices[i];
      const auto packed = own ? pack(mine, slice, receive.runs[i], receive.round)
                              : pack(source, send->slices[i], send->runs[i], receive.round);
      bytes += packed.size();
      scatter(slice, packed);
    }
    if (bytes != receive.length_bytes) fail("a transfer has another length");
    delivered_ += bytes;
    if (own) return;
    charge(receive.round, bytes);
    received_ += bytes;
    ++received_transfers_;
  }

  void scatter(const Slice& slice, const std::vector<std::uint8_t>& packed) {
    const StoredTensor& tensor = planned_.slices[rank_].tensors[slice.tensor];
    const auto found = targets_[rank_].find(std::pair(tensor.section + ":" + tensor.wanted, slice.target));
    if (found == targets_[rank_].end()) return fail("a slice for a box that is not wanted: " + to_string(slice.target));
    Target& target = found->second;
    const Box whole_target = to_byte_box(target.stored, target.box);
    std::size_t next = 0;
    for (const auto& box : slice_boxes(tensor.spec, slice)) {
      for_rows(box, [&](const Dims& at, std::uint64_t length) {
        const std::uint64_t place = linear(whole_target.sizes, relative(at, whole_target));
        for (std::uint64_t i = 0; i < length && next < packed.size(); ++i) {
          target.bytes[place + i] = packed[next++];
          ++target.times[place + i];
        }
      });
    }
    if (next != packed.size()) fail("a slice has another length on both ends");
  }

  void check_targets() {
    std::map<std::string, std::vector<std::uint8_t>> contents;
    for (rank_ = 0; rank_ < targets_.size() && wrong_.empty(); ++rank_) {
      for (const auto& [key, target] : targets_[rank_]) {
        auto& bytes = contents[target.section + ":" + target.stored.fqn];
        if (bytes.empty()) bytes = content(target.section, target.stored);
        const Dims shape = to_byte_shape(target.stored);
        std::size_t next = 0;
        for_rows(to_byte_box(target.stored, target.box), [&](const Dims& at, std::uint64_t length) {
          const std::uint64_t place = linear(shape, at);
          for (std::uint64_t i = 0; i < length; ++i, ++next) {
            if (target.times[next] != 1)
              fail(key.first + ": a byte arrived " + std::to_string(target.times[next]) + " times");
            if (target.bytes[next] != bytes[place + i]) fail(key.first + ": a wrong byte");
          }
        });
      }
    }
  }

  // Chunks that hold a byte of something wanted, found byte row by byte row.
  void check_chunks() {
    std::map<std::pair<std::string, std::string>, std::vector<Box>> wanted;
    for (const auto& of_rank : targets_) {
      for (const auto& [key, target] : of_rank) {
        wanted[std::pair(target.section, target.stored.fqn)].push_back(to_byte_box(target.stored, target.box));
      }
    }
    std::set<std::tuple<std::string, std::uint32_t, std::uint64_t>> touched;
    for (const auto& section : plan_.sections) {
      for (std::uint32_t rank = 0; rank < section.ranks.size(); ++rank) {
        for (const auto& piece : file_pieces(section, Rank(rank))) {
          const TensorSpec& spec = section.tensors[piece.tensor];
          const Box box = to_byte_box(spec, piece.box);
          for (const auto& target : wanted[std::pair(section.section, spec.fqn)]) {
            const auto common = intersect(box, target);
            if (!common) continue;
            for_rows(*common, [&](const Dims& at, std::uint64_t length) {
              const std::uint64_t place = piece.offset_bytes + linear(box.sizes, relative(at, box));
              for (auto c = place / chunk; c <= (place + length - 1) / chunk; ++c)
                touched.emplace(section.section, rank, c);
            });
          }
        }
      }
    }
    for (const auto& key : touched) {
      if (!chunks_read_.contains(key)) fail("a wanted chunk is not read");
    }
    if (chunks_read_.size() != touched.size()) fail("a chunk is read that nobody wants");
  }

  void check_budgets() {
    for (rank_ = 0; rank_ < footprint_.size(); ++rank_) {
      for (const auto& [round, bytes] : footprint_[rank_]) {
        if (bytes > request_.staging_bytes[rank_]) fail("the budget is passed in round " + std::to_string(round));
      }
    }
  }

  void check_counts() {
    if (planned_.storage_bytes_read != storage_bytes_) fail("another number of bytes read than planned");
    if (planned_.bytes_received != received_) fail("another number of bytes received than planned");
    if (planned_.bytes_needed != needed_) fail("another number of bytes needed than planned");
    if (delivered_ != needed_) fail("another number of bytes delivered than needed");
  }

  const LoadRequest& request_;
  const PlannedLoad& planned_;
  Files files_;
  const SavePlan& plan_;
  std::uint32_t rank_ = 0;
  std::string wrong_;
  std::vector<std::map<std::pair<std::string, Box>, Target>> targets_;
  std::vector<std::map<std::uint32_t, std::uint64_t>> footprint_;  // of each rank, by round
  std::map<std::tuple<std::string, std::uint32_t, std::uint64_t>, int> chunks_read_;
  std::uint64_t storage_bytes_ = 0;
  std::uint64_t delivered_ = 0;
  std::uint64_t received_ = 0;
  std::uint64_t needed_ = 0;
  std::uint64_t sends_ = 0;
  std::uint64_t received_transfers_ = 0;
};

}  // namespace

std::string wrong_with_load(const StoredCheckpoint& stored, const LoadRequest& request, const PlannedLoad& planned) {
  return Simulation(stored, request, planned).run();
}

}  // namespace vckpt::oracle
