#include "launch/stored_files.h"

#include <algorithm>
#include <map>
#include <utility>

#include "schema/checked.h"
#include "schema/names.h"

namespace vckpt::launch {

namespace {

constexpr std::uint64_t chunks_at_once = 16;

Damage whole_file(const StoredFile& file, std::string what) {
  return {file.place.section, file.place.rank, file.name, 0, "", std::move(what)};
}

// Lost or unreadable files are damage; a store that does not answer is not.
bool is_damage(const Error& error) {
  return error.code == Code::not_found || error.code == Code::invalid || error.code == Code::corrupt;
}

}  // namespace

Result<std::vector<StoredFile>> stored_files(const CheckpointMetadata& metadata) {
  const auto& id = metadata.decision.id;
  std::map<std::pair<std::string, Rank>, const FileRecord*> records;
  for (const auto& record : metadata.manifest->files) {
    if (!records.emplace(std::pair(record.section, record.rank), &record).second) {
      return corrupt("manifest of " + id.name() + ": two files of section " + record.section + ", rank " +
                     std::to_string(record.rank.value));
    }
  }
  std::vector<StoredFile> files;
  for (const auto& section : metadata.plan->sections) {
    for (std::uint32_t rank = 0; rank < section.ranks.size(); ++rank) {
      auto pieces = file_pieces(section, Rank{rank});
      const auto found = records.find({section.section, Rank{rank}});
      const auto where = "section " + section.section + ", rank " + std::to_string(rank);
      if (pieces.empty() != (found == records.end())) {
        return corrupt("manifest of " + id.name() + ": plan and manifest do not agree on a file of " + where);
      }
      if (pieces.empty()) continue;
      const auto& record = *found->second;
      if (record.data_bytes != data_bytes(pieces) ||
          record.chunk_digests.size() != divide_up(record.data_bytes, chunk_bytes)) {
        return corrupt("manifest of " + id.name() + ": plan and manifest do not agree on the size of the file of " +
                       where);
      }
      FilePlace place{id, section.section, Rank{rank}, record.index};
      auto name = names::data_file(place);
      files.push_back({std::move(place), std::move(name), record, &section, std::move(pieces)});
    }
  }
  if (files.size() != records.size()) {
    return corrupt("manifest of " + id.name() + ": it names files that the plan does not have");
  }
  return files;
}

std::string pieces_text(const StoredFile& file, std::uint64_t begin_bytes, std::uint64_t end_bytes) {
  const auto first = std::upper_bound(
      file.pieces.begin(), file.pieces.end(), begin_bytes,
      [](std::uint64_t at, const PlacedPiece& piece) { return at < piece.offset_bytes + piece.length_bytes; });
  const auto last =
      std::lower_bound(first, file.pieces.end(), end_bytes,
                       [](const PlacedPiece& piece, std::uint64_t at) { return piece.offset_bytes < at; });
  if (first == last) return "";
  auto text = file.section->tensors[first->tensor].fqn + " " + to_string(first->box);
  if (last - first > 1)
    text += " and " + std::to_string(last - first - 1) + " more up to " +
            file.section->tensors[std::prev(last)->tensor].fqn;
  return text;
}

std::string to_string(const Damage& damage) {
  auto text = "section " + damage.section + ", rank " + std::to_string(damage.rank.value) + ", file " + damage.file;
  if (damage.chunk == header_chunk) {
    text += ", header";
  } else if (!damage.pieces.empty()) {
    text += ", chunk " + std::to_string(damage.chunk) + " (" + damage.pieces + ")";
  }
  return text + ": " + damage.what;
}

Result<void> check_length(BlockingStorage& storage, const StoredFile& file,
                          const std::function<void(Damage)>& damaged) {
  const auto length = storage.length(file.name);
  if (!length) {
    if (!is_damage(length.error())) return length.error();
    damaged(whole_file(file, length.error().message));
  } else if (*length != file.file_bytes()) {
    damaged(whole_file(file, std::to_string(*length) + " bytes long instead of " + std::to_string(file.file_bytes())));
  }
  return {};
}

Result<void> read_checked(BlockingStorage& storage, const StoredFile& file,
                          const std::function<Result<void>(std::uint64_t, std::span<const std::byte>)>& take,
                          const std::function<void(Damage)>& damaged) {
  auto sound = true;
  VCKPT_TRY_VOID(check_length(storage, file, [&](Damage damage) {
    sound = false;
    damaged(std::move(damage));
  }));
  if (!sound) return {};

  const auto& record = file.record;
  const auto header = storage.read(file.name, 0, record.header_bytes);
  if (!header && !is_damage(header.error())) return header.error();
  if (!header || chunk_digest(file.place, header_chunk, *header) != record.header_digest) {
    damaged({file.place.section, file.place.rank, file.name, header_chunk, "",
             header ? "its digest is not the one that was committed" : header.error().message});
  }
  constexpr auto window_bytes = chunks_at_once * chunk_bytes;
  for (std::uint64_t begin = 0; begin < record.data_bytes; begin += window_bytes) {
    const auto length = std::min(window_bytes, record.data_bytes - begin);
    const auto data = storage.read(file.name, record.header_bytes + begin, length);
    if (!data) {
      if (!is_damage(data.error())) return data.error();
      damaged(whole_file(file, data.error().message));
      return {};
    }
    for (std::uint64_t at = 0; at < length; at += chunk_bytes) {
      const auto bytes = std::span(*data).subspan(at, std::min<std::uint64_t>(chunk_bytes, length - at));
      const auto chunk = (begin + at) / chunk_bytes;
      if (chunk_digest(file.place, chunk, bytes) == record.chunk_digests[chunk]) {
        VCKPT_TRY_VOID(take(begin + at, bytes));
      } else {
        damaged({file.place.section, file.place.rank, file.name, chunk,
                 pieces_text(file, begin + at, begin + at + bytes.size()),
                 "its digest is not the one that was committed"});
      }
    }
  }
  return {};
}

}  // namespace vckpt::launch
