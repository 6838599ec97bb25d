#include "save_slice.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "schema/checked.h"
#include "schema/codec.h"
#include "schema/digest.h"
#include "schema/names.h"
#include "schema/safetensors.h"

namespace vckpt::coordinator {
namespace {

constexpr std::uint32_t ranks_per_folder = 1024;

SectionSlice slice_of(const SectionPlan& section, const std::vector<PlacedPiece>& placed) {
  SectionSlice slice{section.section, {}, {}};
  std::map<std::uint32_t, std::uint32_t> local;  // index in the plan -> in the slice; both sorted by fqn
  for (const auto& piece : placed) local.emplace(piece.tensor, 0);
  for (auto& [global, index] : local) {
    index = static_cast<std::uint32_t>(slice.tensors.size());
    slice.tensors.push_back(section.tensors[global]);
  }
  for (const auto& piece : placed) slice.pieces.push_back({local[piece.tensor], piece.box});
  return slice;
}

Result<void> check_file(const FileRecord& file, Rank rank, const std::string& section, std::uint64_t data_bytes) {
  const auto where = "section '" + file.section + "'";
  if (file.section != section || file.rank != rank || file.index != 0 || file.store != 0) {
    return corrupt("a file of " + where + " of rank " + std::to_string(file.rank.value) +
                   " where the plan has one of section '" + section + "'");
  }
  if (file.data_bytes != data_bytes) {
    return corrupt(where + ": " + std::to_string(file.data_bytes) + " bytes, the plan has " +
                   std::to_string(data_bytes));
  }
  const auto chunks = divide_up(data_bytes, chunk_bytes);
  if (file.chunk_digests.size() != chunks) {
    return corrupt(where + ": " + std::to_string(file.chunk_digests.size()) + " chunk digests for " +
                   std::to_string(chunks) + " chunks");
  }
  if (file.header_bytes == 0 || file.header_bytes % safetensors::data_alignment_bytes != 0 ||
      file.header_bytes > safetensors::header_length_max + safetensors::data_alignment_bytes) {
    return corrupt(where + ": a header of " + std::to_string(file.header_bytes) + " bytes");
  }
  return {};
}

Result<void> check_items(const std::vector<ItemOffer>& asked, const std::vector<Item>& items) {
  if (items.size() != asked.size()) {
    return corrupt(std::to_string(items.size()) + " items where " + std::to_string(asked.size()) + " were asked for");
  }
  std::map<ItemKey, const ItemOffer*> offers;
  for (const auto& offer : asked) offers[{offer.section, offer.name}] = &offer;
  for (const auto& item : items) {
    const auto named = "item '" + item.section + ":" + item.name + "'";
    const auto found = offers.find({item.section, item.name});
    if (found == offers.end()) return corrupt(named + " was not asked for, or comes twice");
    if (found->second->scope != item.scope) return corrupt(named + " has another scope than was offered");
    if (xxh3_128(encode(item.value)) != found->second->digest) {
      return corrupt(named + " does not have the digest that was offered");
    }
    offers.erase(found);
  }
  return {};
}

}  // namespace

std::vector<SectionSlice> section_slices(const SavePlan& plan, Rank rank) {
  std::vector<SectionSlice> slices;
  for (const auto& section : plan.sections) {
    const auto placed = file_pieces(section, rank);
    if (!placed.empty()) slices.push_back(slice_of(section, placed));
  }
  return slices;
}

std::vector<std::string> attempt_folders(const SavePlan& plan, const CheckpointId& id, std::uint32_t world_size) {
  std::vector<std::string> folders{names::checkpoint(id)};
  for (const auto& section : plan.sections) {
    for (std::uint32_t rank = 0; rank < world_size; rank += ranks_per_folder) {
      folders.push_back(names::rank_folder({id, section.section, Rank{rank}, 0}));
    }
  }
  return folders;
}

Result<void> check_receipt(const SavePlan& plan, Rank rank, const std::vector<ItemOffer>& asked,
                           const Receipt& receipt) {
  std::size_t next = 0;
  for (const auto& section : plan.sections) {
    const auto placed = file_pieces(section, rank);
    if (placed.empty()) continue;
    if (next == receipt.files.size()) return corrupt("no file of section '" + section.section + "'");
    VCKPT_TRY_VOID(check_file(receipt.files[next++], rank, section.section, data_bytes(placed)));
  }
  if (next != receipt.files.size()) {
    return corrupt("a file of section '" + receipt.files[next].section + "' that the plan does not have");
  }
  return check_items(asked, receipt.items);
}

Manifest make_manifest(const CheckpointId& id, const Digest& plan, const std::string& meta,
                       const std::vector<Receipt>& receipts) {
  Manifest manifest{id, plan, static_cast<std::uint32_t>(receipts.size()), meta, {}, {}};
  for (std::uint32_t rank = 0; rank < receipts.size(); ++rank) {
    manifest.files.insert(manifest.files.end(), receipts[rank].files.begin(), receipts[rank].files.end());
    for (const auto& item : receipts[rank].items) manifest.items.push_back({Rank{rank}, item});
  }
  std::sort(manifest.files.begin(), manifest.files.end(), [](const FileRecord& a, const FileRecord& b) {
    return std::tie(a.section, a.rank, a.index) < std::tie(b.section, b.rank, b.index);
  });
  std::sort(manifest.items.begin(), manifest.items.end(), [](const StoredItem& a, const StoredItem& b) {
    return std::tie(a.item.section, a.item.name, a.rank) < std::tie(b.item.section, b.item.name, b.rank);
  });
  return manifest;
}

std::vector<SectionSummary> summarize(const SavePlan& plan, const Manifest& manifest) {
  std::map<std::string, std::uint64_t> data_bytes;
  for (const auto& file : manifest.files) data_bytes[file.section] += file.data_bytes;
  std::vector<SectionSummary> summaries;
  for (const auto& section : plan.sections) {
    summaries.push_back({section.section, section.tensors.size(), data_bytes[section.section]});
  }
  return summaries;
}

double ratio(double value, double base) { return base > 0 ? value / base : 1.0; }

Report save_report(const Balance& balance, const std::vector<Receipt>& receipts, double plan_seconds) {
  Report report;
  report.ranks = static_cast<std::uint32_t>(receipts.size());
  report.unique_bytes = balance.unique_bytes;
  for (const auto& receipt : receipts) {
    for (const auto& file : receipt.files) report.bytes_written += file.data_bytes;
    report.staging_peak_bytes = std::max(report.staging_peak_bytes, receipt.staging_peak_bytes);
  }
  report.most_loaded_over_mean = ratio(static_cast<double>(balance.most_loaded_bytes), balance.mean_bytes);
  report.most_loaded_over_bound = ratio(static_cast<double>(balance.most_loaded_bytes), balance.bound_bytes);
  report.plan_seconds = plan_seconds;
  return report;
}

}  // namespace vckpt::coordinator
