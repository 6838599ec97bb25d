#include "coordinator/planner/readings.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "coordinator/planner/balance.h"
#include "coordinator/planner/byte_line.h"
#include "coordinator/planner/cover.h"
#include "schema/checked.h"
#include "schema/digest.h"

namespace vckpt {
namespace {

// Units [begin, end) of a file of which a set of ranks wants something.
struct WantedUnits {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  std::uint32_t set = 0;
  auto operator<=>(const WantedUnits&) const = default;
};

// The units of a file that hold bytes of `part`, a byte box inside the byte box `piece`. Where the gaps between runs of
// bytes are shorter than a unit, all units from the first to the last one hold some.
class TouchedUnits {
 public:
  TouchedUnits(const Box& piece, const Box& part, std::uint64_t piece_offset, std::uint64_t unit_bytes)
      : piece_(piece), part_(part), unit_bytes_(unit_bytes) {
    const std::size_t dims = piece.sizes.size();
    stride_.assign(dims, 1);
    for (std::size_t d = dims - 1; d-- > 0;) stride_[d] = stride_[d + 1] * piece.sizes[d + 1];
    span_.assign(dims + 1, 1);
    dense_.assign(dims + 1, true);
    for (std::size_t d = dims; d-- > 0;) {
      span_[d] = (part.sizes[d] - 1) * stride_[d] + span_[d + 1];
      dense_[d] = dense_[d + 1] && (part.sizes[d] == 1 || stride_[d] - span_[d + 1] < unit_bytes);
    }
    walk(0, piece_offset);
  }
  const std::vector<Range>& units() const { return units_; }

 private:
  void walk(std::size_t dim, std::uint64_t base) {
    if (dense_[dim]) {
      for (std::size_t d = dim; d < stride_.size(); ++d) base += (part_.offsets[d] - piece_.offsets[d]) * stride_[d];
      const Range found{base / unit_bytes_, (base + span_[dim] - 1) / unit_bytes_ + 1};
      if (!units_.empty() && found.begin <= units_.back().end) {
        units_.back().end = found.end;
      } else {
        units_.push_back(found);
      }
      return;
    }
    for (std::uint64_t i = 0; i < part_.sizes[dim]; ++i) {
      walk(dim + 1, base + (part_.offsets[dim] - piece_.offsets[dim] + i) * stride_[dim]);
    }
  }

  const Box& piece_;
  const Box& part_;
  std::uint64_t unit_bytes_;
  std::vector<std::uint64_t> stride_;
  std::vector<std::uint64_t> span_;  // from the first to past the last byte of dimensions d and up
  std::vector<bool> dense_;
  std::vector<Range> units_;
};

class Assigner {
 public:
  Assigner(const StoredCheckpoint& stored, const Wants& wants, HolderSets& sets, std::uint32_t world_size)
      : plan_(*stored.plan), manifest_(*stored.manifest), wants_(wants), sets_(sets), world_size_(world_size) {}

  Result<Readings> run() {
    readings_.of_reader.resize(world_size_);
    choose_unit();
    for (std::uint32_t section = 0; section < wants_.sections.size(); ++section) {
      VCKPT_TRY_VOID(add_section(section));
    }
    balance();
    for (auto& of_reader : readings_.of_reader) std::sort(of_reader.begin(), of_reader.end());
    return std::move(readings_);
  }

 private:
  const SectionPlan& plan_of(std::uint32_t section) const { return plan_.sections[wants_.sections[section].stored]; }

  void choose_unit() {
    std::uint64_t chunks = 0;
    for (const auto& file : manifest_.files) chunks += divide_up(file.data_bytes, chunk_bytes);
    unit_chunks_ = 1;
    while (chunks / unit_chunks_ > units_max) unit_chunks_ *= 2;
  }

  Result<void> add_section(std::uint32_t section) {
    const SectionPlan& plan = plan_of(section);
    std::map<std::uint32_t, const FileRecord*> records;
    for (const auto& file : manifest_.files) {
      if (file.section != plan.section) continue;
      if (!records.emplace(file.rank.value, &file).second || file.index != 0 || file.rank.value >= plan.ranks.size()) {
        return corrupt(file_text(plan, file.rank.value) + " is not one that the plan names");
      }
    }
    std::vector<std::vector<CoverPiece>> covers(plan.tensors.size());
    for (std::uint32_t rank = 0; rank < plan.ranks.size(); ++rank) {
      auto pieces = file_pieces(plan, Rank(rank));
      const auto record = records.find(rank);
      const std::uint64_t recorded = record == records.end() ? 0 : record->second->data_bytes;
      if (recorded != data_bytes(pieces)) {
        return corrupt(file_text(plan, rank) + " has " + std::to_string(recorded) + " bytes in the manifest, " +
                       std::to_string(data_bytes(pieces)) + " in the plan");
      }
      for (const auto& piece : pieces) {
        if (wanted(section, piece.tensor)) covers[piece.tensor].push_back(CoverPiece{piece.box, {}});
      }
      if (record != records.end()) add_file(section, *record->second, std::move(pieces));
    }
    return check_covers(section, covers);
  }

  bool wanted(std::uint32_t section, std::uint32_t tensor) const {
    return !wants_.sections[section].targets[tensor].targets().empty();
  }

  // Whoever wrote the plan, what is wanted must lie in it once.
  Result<void> check_covers(std::uint32_t section, const std::vector<std::vector<CoverPiece>>& covers) const {
    const SectionPlan& plan = plan_of(section);
    for (std::uint32_t tensor = 0; tensor < covers.size(); ++tensor) {
      if (!wanted(section, tensor)) continue;
      const auto fault = find_cover_fault(plan.tensors[tensor].shape, covers[tensor]);
      if (!fault) continue;
      return corrupt("stored plan, section '" + plan.section + "': tensor '" + plan.tensors[tensor].fqn +
                     "': " + to_string(fault->box) + (fault->overlap ? " is stored twice" : " is not stored"));
    }
    return {};
  }

  static std::string file_text(const SectionPlan& plan, std::uint32_t rank) {
    return "section '" + plan.section + "': the file of rank " + std::to_string(rank);
  }

  void add_file(std::uint32_t section, const FileRecord& record, std::vector<PlacedPiece> pieces) {
    const auto& tensors = plan_of(section).tensors;
    const std::uint64_t unit_bytes = unit_chunks_ * chunk_bytes;
    WantedFile file{&record, section, {}};
    std::vector<WantedUnits> units;
    for (auto& piece : pieces) {
      const TargetIndex& index = wants_.sections[section].targets[piece.tensor];
      const auto touching = index.touching(piece.box);
      if (touching.empty()) continue;
      const Box piece_box = to_byte_box(tensors[piece.tensor], piece.box);
      for (const auto target : touching) {
        const auto part = intersect(piece_box, to_byte_box(tensors[piece.tensor], index.targets()[target].box));
        const TouchedUnits touched(piece_box, *part, piece.offset_bytes, unit_bytes);
        for (const auto& range : touched.units()) {
          units.push_back(WantedUnits{range.begin, range.end, index.targets()[target].set});
        }
      }
      file.pieces.push_back(std::move(piece));
      if (units.size() > compact_above_) compact(units);
    }
    if (units.empty()) return;
    const auto number = static_cast<std::uint32_t>(readings_.files.size());
    readings_.files.push_back(std::move(file));
    add_runs(number, std::move(units));
  }

  // Many small pieces in one unit say the same many times over.
  static void compact(std::vector<WantedUnits>& units) {
    std::sort(units.begin(), units.end());
    units.erase(std::unique(units.begin(), units.end()), units.end());
  }

  // The maximal runs of units that one set of ranks wants.
  void add_runs(std::uint32_t file, std::vector<WantedUnits> units) {
    compact(units);
    struct Edge {
      std::uint64_t unit;
      std::uint32_t set;
      int change;
    };
    std::vector<Edge> edges;
    for (const auto& wanted : units) {
      edges.push_back(Edge{wanted.begin, wanted.set, 1});
      edges.push_back(Edge{wanted.end, wanted.set, -1});
    }
    std::sort(edges.begin(), edges.end(), [](const Edge& a, const Edge& b) { return a.unit < b.unit; });
    std::map<std::uint32_t, int> active;
    std::vector<Reading> runs;
    for (std::size_t i = 0; i < edges.size();) {
      const std::uint64_t begin = edges[i].unit;
      for (; i < edges.size() && edges[i].unit == begin; ++i) {
        if ((active[edges[i].set] += edges[i].change) == 0) active.erase(edges[i].set);
      }
      if (active.empty() || i == edges.size()) continue;
      const FileRecord& record = *readings_.files[file].record;
      const std::uint64_t first = begin * unit_chunks_;
      const std::uint64_t last = std::min(edges[i].unit * unit_chunks_, divide_up(record.data_bytes, chunk_bytes));
      const std::uint32_t set = joined(active);
      if (!runs.empty() && runs.back().set == set && runs.back().first_chunk + runs.back().chunk_count == first) {
        runs.back().chunk_count += last - first;
      } else {
        runs.push_back(Reading{file, first, last - first, set});
      }
    }
    for (const auto& run : runs) runs_of_set_[run.set].push_back(run);
  }

  std::uint32_t joined(const std::map<std::uint32_t, int>& active) {
    if (active.size() == 1) return active.begin()->first;
    std::vector<std::uint32_t> key;
    for (const auto& [set, count] : active) key.push_back(set);
    const auto known = joined_.find(key);
    if (known != joined_.end()) return known->second;
    Ranks ranks;
    for (const auto set : key) ranks.insert(ranks.end(), sets_.ranks(set).begin(), sets_.ranks(set).end());
    std::sort(ranks.begin(), ranks.end());
    ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
    const auto set = sets_.intern(std::move(ranks));
    joined_.emplace(std::move(key), set);
    return set;
  }

  std::uint64_t bytes_of(const Reading& run) const {
    return chunks_bytes(*readings_.files[run.file].record, run.first_chunk, run.chunk_count);
  }

  void balance() {
    std::vector<std::uint64_t> alone(world_size_, 0);
    std::vector<SharedBytes> shared;
    std::vector<const std::vector<Reading>*> lines;
    for (const auto& [set, runs] : runs_of_set_) {
      std::uint64_t bytes = 0;
      for (const auto& run : runs) bytes += bytes_of(run);
      readings_.bytes += bytes;
      const Ranks& ranks = sets_.ranks(set);
      if (ranks.size() == 1) {
        alone[ranks.front()] += bytes;
        readings_.of_reader[ranks.front()].insert(readings_.of_reader[ranks.front()].end(), runs.begin(), runs.end());
        continue;
      }
      shared.push_back(SharedBytes{&ranks, bytes});
      lines.push_back(&runs);
    }
    const Shares shares = share(alone, shared);
    readings_.bound_bytes = shares.bound_bytes;
    Ledger ledger(std::move(alone));
    for (const auto number : shares.order) {
      const Ranks& ranks = *shared[number].ranks;
      const auto taken = lay(*lines[number], ranks, ledger.aim(ranks, shares.quotas[number]));
      ledger.enter(ranks, shares.quotas[number], taken);
    }
    for (const auto load : ledger.loads()) readings_.most_loaded_bytes = std::max(readings_.most_loaded_bytes, load);
  }

  std::vector<std::uint64_t> lay(const std::vector<Reading>& runs, const Ranks& ranks,
                                 std::vector<std::uint64_t> quotas) {
    std::vector<std::uint64_t> taken(ranks.size(), 0);
    const std::uint64_t unit_bytes = unit_chunks_ * chunk_bytes;
    const TensorSpec bytes{"file", DType::u8, {}};
    LineCutter cutter(std::move(quotas), unit_bytes);  // cuts fall between units
    for (const auto& run : runs) {
      LineSegment segment{&bytes, Box{{0, 0}, {divide_up(run.chunk_count, unit_chunks_), unit_bytes}}, {}};
      segment.range = Range{0, bytes_of(run)};
      for (const auto& part : cutter.cut(segment)) {
        const std::uint64_t first = part.range.begin / chunk_bytes;
        const std::uint64_t last = divide_up(part.range.end, chunk_bytes);
        const Reading reading{run.file, run.first_chunk + first, last - first, run.set};
        taken[part.taker] += bytes_of(reading);
        readings_.of_reader[ranks[part.taker]].push_back(reading);
      }
    }
    return taken;
  }

  static constexpr std::size_t compact_above_ = 1 << 16;

  const SavePlan& plan_;
  const Manifest& manifest_;
  const Wants& wants_;
  HolderSets& sets_;
  std::uint32_t world_size_;
  std::uint64_t unit_chunks_ = 1;
  Readings readings_;
  std::map<std::uint32_t, std::vector<Reading>> runs_of_set_;
  std::map<std::vector<std::uint32_t>, std::uint32_t> joined_;
};

}  // namespace

std::uint64_t chunks_bytes(const FileRecord& file, std::uint64_t first_chunk, std::uint64_t chunk_count) {
  return std::min(file.data_bytes, (first_chunk + chunk_count) * chunk_bytes) - first_chunk * chunk_bytes;
}

Result<Readings> assign_readings(const StoredCheckpoint& stored, const Wants& wants, HolderSets& sets,
                                 std::uint32_t world_size) {
  return Assigner(stored, wants, sets, world_size).run();
}

}  // namespace vckpt
