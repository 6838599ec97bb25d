#include "launch/export.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <vector>

#include "launch/command.h"
#include "launch/output_folder.h"
#include "launch/root.h"
#include "launch/stored_files.h"
#include "runtime/memory.h"
#include "schema/checked.h"
#include "schema/safetensors.h"
#include "schema/slice.h"

namespace vckpt::launch {

namespace {

constexpr std::uint64_t header_alignment_bytes = 8;  // as the format's own writer pads

// One file to write: some whole tensors of the section.
struct Shard {
  std::string name;
  std::string header;
  std::vector<safetensors::Tensor> tensors;
  std::unique_ptr<OutputFile> file;
};

// Where a tensor goes.
struct Destination {
  std::size_t shard = 0;
  std::uint64_t begin_bytes = 0;  // from the data start of the shard
};

const SectionPlan* section_plan(const SavePlan& plan, const std::string& name) {
  const auto found = std::find_if(plan.sections.begin(), plan.sections.end(),
                                  [&](const SectionPlan& section) { return section.section == name; });
  return found == plan.sections.end() ? nullptr : &*found;
}

Result<const SectionPlan*> choose_section(const CheckpointMetadata& metadata, const std::string& wanted) {
  const auto& plan = *metadata.plan;
  if (const auto* found = section_plan(plan, wanted.empty() ? "model" : wanted)) return found;
  if (wanted.empty() && plan.sections.size() == 1) return &plan.sections.front();
  std::string names;
  for (const auto& section : plan.sections) names += (names.empty() ? "" : ", ") + section.section;
  if (wanted.empty()) return invalid(metadata.decision.id.name() + ": say which section to export: " + names);
  return not_found(metadata.decision.id.name() + ": no section '" + wanted + "'; there are " + names);
}

safetensors::Tensor described(const TensorSpec& spec) {
  safetensors::Tensor tensor{spec.fqn, spec.dtype, spec.shape, 0, 0};
  const auto known = safetensors_name(spec.dtype).has_value();
  if (!known || bits(spec.dtype) * elements(whole(spec.shape)) % 8 != 0) {
    tensor.dtype = DType::u8;
    tensor.shape = to_byte_shape(spec);
  }
  return tensor;
}

// Tensors in the order of the plan, cut where a file would exceed `shard_bytes`; wider element types first within a
// file, so that every element is aligned to its size.
std::vector<std::vector<std::uint32_t>> cut_into_shards(const SectionPlan& section, std::uint64_t shard_bytes) {
  std::vector<std::vector<std::uint32_t>> shards(1);
  std::uint64_t filled = 0;
  for (std::uint32_t tensor = 0; tensor < section.tensors.size(); ++tensor) {
    const auto& spec = section.tensors[tensor];
    const auto bytes = box_bytes(spec.dtype, whole(spec.shape));
    if (!shards.back().empty() && filled + bytes > shard_bytes) {
      shards.emplace_back();
      filled = 0;
    }
    shards.back().push_back(tensor);
    filled += bytes;
  }
  for (auto& shard : shards) {
    std::stable_sort(shard.begin(), shard.end(),
                     [&](auto a, auto b) { return bits(section.tensors[a].dtype) > bits(section.tensors[b].dtype); });
  }
  return shards;
}

std::string shard_name(const std::string& section, std::size_t index, std::size_t count) {
  if (count == 1) return section + ".safetensors";
  const auto padded = [](std::size_t number) {
    const auto digits = std::to_string(number);
    return std::string(digits.size() < 5 ? 5 - digits.size() : 0, '0') + digits;
  };
  return section + "-" + padded(index + 1) + "-of-" + padded(count) + ".safetensors";
}

class Export {
 public:
  Export(const SectionPlan& section, std::uint64_t shard_bytes)
      : section_(section), destinations_(section.tensors.size()) {
    const auto cut = cut_into_shards(section, shard_bytes);
    for (std::size_t index = 0; index < cut.size(); ++index) {
      shards_.push_back({shard_name(section.section, index, cut.size()), "", {}, nullptr});
      std::uint64_t offset = 0;
      for (const auto tensor : cut[index]) {
        const auto& spec = section.tensors[tensor];
        auto entry = described(spec);
        destinations_[tensor] = {index, offset};
        entry.begin_bytes = offset;
        offset += box_bytes(spec.dtype, whole(spec.shape));
        entry.end_bytes = offset;
        shards_.back().tensors.push_back(std::move(entry));
      }
    }
  }

  const std::vector<Shard>& shards() const { return shards_; }
  std::uint64_t data_bytes() const {
    std::uint64_t bytes = 0;
    for (const auto& shard : shards_) bytes += shard.tensors.empty() ? 0 : shard.tensors.back().end_bytes;
    return bytes;
  }

  Result<void> create_files(const OutputFolder& folder) {
    for (auto& shard : shards_) {
      std::map<std::string, std::string> metadata = {{"format", "pt"}};
      for (const auto& tensor : shard.tensors) {
        const auto& spec = *std::lower_bound(section_.tensors.begin(), section_.tensors.end(), tensor.name,
                                             [](const TensorSpec& a, const std::string& fqn) { return a.fqn < fqn; });
        if (spec.dtype != tensor.dtype) metadata["vckpt.dtype:" + spec.fqn] = std::string(to_string(spec.dtype));
      }
      VCKPT_TRY(shard.header, safetensors::write(shard.tensors, metadata, header_alignment_bytes));
      const auto data = shard.tensors.empty() ? 0 : shard.tensors.back().end_bytes;
      VCKPT_TRY(shard.file, OutputFile::create(folder.file(shard.name), shard.header.size() + data));
      std::memcpy(shard.file->bytes().data(), shard.header.data(), shard.header.size());
    }
    return {};
  }

  // Bytes [begin, begin + size) of the data of a stored file.
  void take(const StoredFile& stored, std::uint64_t begin_bytes, std::span<const std::byte> bytes) {
    const auto end_bytes = begin_bytes + bytes.size();
    auto piece =
        std::upper_bound(stored.pieces.begin(), stored.pieces.end(), begin_bytes,
                         [](std::uint64_t at, const PlacedPiece& p) { return at < p.offset_bytes + p.length_bytes; });
    std::uint64_t done = 0;
    for (; piece != stored.pieces.end() && piece->offset_bytes < end_bytes; ++piece) {
      const auto& spec = section_.tensors[piece->tensor];
      const auto shape = to_byte_shape(spec);
      const auto& destination = destinations_[piece->tensor];
      const auto& shard = shards_[destination.shard];
      const View view{shard.file->bytes().data() + shard.header.size() + destination.begin_bytes,
                      dense_strides(shape, 1)};
      const Slice slice{piece->tensor, piece->box, piece->offset_bytes, begin_bytes, end_bytes, whole(spec.shape)};
      for (const auto& part : slice_boxes(spec, slice)) {
        const auto targets = copies(view, whole(shape), part);
        const auto length = packed_bytes(targets);
        scatter(bytes.subspan(done, length), targets);
        done += length;
      }
    }
    VCKPT_ASSERT(done == bytes.size());
  }

  Result<void> sync() {
    for (auto& shard : shards_) VCKPT_TRY_VOID(shard.file->sync());
    return {};
  }

 private:
  const SectionPlan& section_;
  std::vector<Destination> destinations_;  // by tensor
  std::vector<Shard> shards_;
};

Result<void> write_index(const OutputFolder& folder, const std::string& section, const Export& exported) {
  Json json;
  json.object().key("metadata").object().member("total_size", exported.data_bytes()).end();
  json.key("weight_map").object();
  for (const auto& shard : exported.shards()) {
    for (const auto& tensor : shard.tensors) json.member(tensor.name, shard.name);
  }
  json.end().end();
  const auto text = json.text() + "\n";
  VCKPT_TRY(const auto file, OutputFile::create(folder.file(section + ".safetensors.index.json"), text.size()));
  std::memcpy(file->bytes().data(), text.data(), text.size());
  return file->sync();
}

Result<void> copy_files(Root& root, const CheckpointMetadata& metadata, const SectionPlan& section, Export& exported) {
  VCKPT_TRY(const auto files, stored_files(metadata));
  Progress progress("exporting " + metadata.decision.id.name(), exported.data_bytes());
  std::optional<Error> damaged;
  for (const auto& file : files) {
    if (file.section != &section) continue;
    const auto take = [&](std::uint64_t begin, std::span<const std::byte> bytes) -> Result<void> {
      exported.take(file, begin, bytes);
      progress.add(bytes.size());
      return {};
    };
    const auto note = [&](const Damage& damage) {
      if (!damaged) damaged = corrupt(metadata.decision.id.name() + ": " + to_string(damage));
    };
    VCKPT_TRY_VOID(read_checked(root.storage(), file, take, note));
    if (damaged) return *damaged;
  }
  return {};
}

}  // namespace

Result<int> export_checkpoint(const ExportArguments& arguments, std::ostream& out) {
  VCKPT_TRY(const auto name, parse_checkpoint_name(arguments.checkpoint));
  VCKPT_TRY(const auto root, Root::open(name.root));
  VCKPT_TRY(const auto metadata, root->find(name.selector));
  VCKPT_TRY(const auto* section, choose_section(metadata, arguments.section));
  const auto one_file = arguments.target.ends_with(".safetensors");
  Export exported(*section, one_file ? ~std::uint64_t{0} : std::max<std::uint64_t>(arguments.shard_bytes, 1));
  VCKPT_TRY(const auto folder, OutputFolder::create(arguments.target));
  // Where they lie until all is there is nothing that the user named.
  if (const auto made = exported.create_files(*folder); !made) return made.error().with_context(arguments.target);
  VCKPT_TRY_VOID(copy_files(*root, metadata, *section, exported));
  VCKPT_TRY_VOID(exported.sync());
  const auto& shards = exported.shards();
  if (!one_file && shards.size() > 1) VCKPT_TRY_VOID(write_index(*folder, section->section, exported));
  VCKPT_TRY_VOID(one_file ? folder->move_file(shards.front().name) : folder->move_folder());
  if (arguments.json) {
    Json json;
    json.object().member("id", metadata.decision.id.name()).member("section", section->section);
    json.member("target", arguments.target).member("files", std::uint64_t{shards.size()});
    json.member("tensors", std::uint64_t{section->tensors.size()}).member("bytes", exported.data_bytes()).end();
    out << json.text() << '\n';
  } else {
    out << metadata.decision.id.name() << ": " << section->tensors.size() << " tensors of section " << section->section
        << ", " << bytes_text(exported.data_bytes()) << ", in " << arguments.target << " (" << shards.size()
        << (shards.size() == 1 ? " file)\n" : " files)\n");
  }
  return exit_ok;
}

}  // namespace vckpt::launch
