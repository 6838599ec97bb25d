#include "worker/load_geometry.h"

#include <algorithm>
#include <cstring>

#include "schema/checked.h"
#include "schema/digest.h"
#include "schema/names.h"
#include "worker/cast.h"

namespace vckpt {
namespace {

// The boxes of `outer` that are not in `inner`, a box inside of it.
std::vector<Box> difference(const Box& outer, const Box& inner) {
  std::vector<Box> boxes;
  if (empty(outer)) return boxes;
  if (empty(inner)) return {outer};
  Box rest = outer;
  for (std::size_t d = 0; d < outer.sizes.size(); ++d) {
    const auto add = [&](std::uint64_t begin, std::uint64_t end) {
      if (begin == end) return;
      Box part = rest;
      part.offsets[d] = begin;
      part.sizes[d] = end - begin;
      boxes.push_back(std::move(part));
    };
    add(rest.offsets[d], inner.offsets[d]);
    add(inner.offsets[d] + inner.sizes[d], rest.offsets[d] + rest.sizes[d]);
    rest.offsets[d] = inner.offsets[d];
    rest.sizes[d] = inner.sizes[d];
  }
  return boxes;
}

std::string tensor_name(const StoredTensor& tensor) {
  return "section '" + tensor.section + "': tensor '" + tensor.spec.fqn + "'";
}

}  // namespace

Result<LoadGeometry> LoadGeometry::make(std::shared_ptr<const LoadSlice> slice,
                                        std::shared_ptr<const TensorTable> table, Rank self) {
  LoadGeometry geometry;
  geometry.slice_ = std::move(slice);
  geometry.table_ = std::move(table);
  for (const auto& tensor : geometry.slice_->tensors) {
    const SectionTable* section = geometry.table_->find(tensor.section);
    geometry.locals_.push_back(section == nullptr ? nullptr : section->find(tensor.wanted));
  }
  VCKPT_TRY_VOID(geometry.check_files());
  VCKPT_TRY_VOID(geometry.check_transfers(self));
  return geometry;
}

Result<void> LoadGeometry::check_files() const {
  for (const auto& file : slice_->files) {
    const auto chunks = divide_up(file.file.data_bytes, chunk_bytes);
    const auto end = checked_add(file.first_chunk, file.file.chunk_digests.size());
    if (!end || *end > chunks) return internal("the plan names chunks that a file does not have");
  }
  for (const auto& read : slice_->reads) {
    if (read.file >= slice_->files.size()) return internal("a read names a file that the plan does not list");
    const auto& file = slice_->files[read.file];
    const auto end = checked_add(read.first_chunk, read.chunk_count);
    if (!end || read.chunk_count == 0 || read.first_chunk < file.first_chunk ||
        *end > file.first_chunk + file.file.chunk_digests.size()) {
      return internal("a read names chunks without digests");
    }
  }
  return {};
}

Result<void> LoadGeometry::check_slice(const Slice& slice, Round round, const std::uint32_t* read,
                                       bool is_target) const {
  if (slice.tensor >= slice_->tensors.size()) return internal("a slice names a tensor that the plan does not list");
  const StoredTensor& tensor = slice_->tensors[slice.tensor];
  const std::string name = tensor_name(tensor);
  if (const auto piece = check_box(slice.piece, tensor.spec.shape); !piece)
    return internal(name + ": " + piece.error().message);
  if (const auto box = check_box(slice.target, tensor.spec.shape); !box)
    return internal(name + ": " + box.error().message);
  if (slice.begin_bytes > slice.end_bytes) return internal(name + ": a slice ends before it begins");
  if (read != nullptr) {
    if (*read >= slice_->reads.size() || slice_->reads[*read].round != round) {
      return internal(name + ": a slice names a read of another round");
    }
    const RunBytes bytes = run(*read);
    if (slice.begin_bytes < bytes.begin_bytes || slice.end_bytes > bytes.begin_bytes + bytes.length_bytes) {
      return internal(name + ": a slice leaves the chunks that are read for it");
    }
  }
  if (!is_target) return {};
  const LocalTensor* local = locals_[slice.tensor];
  if (local == nullptr) return internal(name + ": this rank does not hold '" + tensor.wanted + "'");
  if (!can_cast(tensor.spec.dtype, local->spec.dtype)) {
    return invalid(name + ": cannot cast " + std::string(to_string(tensor.spec.dtype)) + " to " +
                   std::string(to_string(local->spec.dtype)));
  }
  return {};
}

Result<void> LoadGeometry::check_transfers(Rank self) const {
  for (const auto& send : slice_->sends) {
    if (send.runs.size() != send.slices.size() || send.target == self) return internal("a send is malformed");
    for (std::size_t i = 0; i < send.slices.size(); ++i) {
      VCKPT_TRY_VOID(check_slice(send.slices[i], send.round, &send.runs[i], false));
    }
  }
  for (const auto& receive : slice_->receives) {
    const bool own = receive.source == self;
    if (own && receive.runs.size() != receive.slices.size()) return internal("an own receive is malformed");
    std::uint64_t length_bytes = 0;
    for (std::size_t i = 0; i < receive.slices.size(); ++i) {
      VCKPT_TRY_VOID(check_slice(receive.slices[i], receive.round, own ? &receive.runs[i] : nullptr, true));
      length_bytes += packed_bytes(receive.slices[i]);
    }
    if (length_bytes != receive.length_bytes) return internal("a receive has another length than its slices");
  }
  for (const auto& gap : slice_->gaps) {
    if (gap.tensor >= slice_->tensors.size() || locals_[gap.tensor] == nullptr) {
      return internal("a gap names a tensor that this rank does not hold");
    }
    const TensorSpec& local = locals_[gap.tensor]->spec;
    const auto target = check_box(gap.target, local.shape);
    if (!target) return internal(target.error().message).with_context("gap of '" + local.fqn + "'");
    if (!empty(gap.stored) && !contains(gap.target, gap.stored))
      return internal("a gap of '" + local.fqn + "' is malformed");
  }
  return {};
}

RunBytes LoadGeometry::run(std::uint32_t read) const {
  const ReadRun& chunks = slice_->reads[read];
  const std::uint64_t begin = chunks.first_chunk * chunk_bytes;
  const std::uint64_t end = begin + chunks.chunk_count * chunk_bytes;
  return {nullptr, begin, std::min(end, slice_->files[chunks.file].file.data_bytes) - begin};
}

std::string LoadGeometry::file_name(std::uint32_t read) const {
  const FileRecord& file = slice_->files[slice_->reads[read].file].file;
  return names::data_file({slice_->id, file.section, file.rank, file.index});
}

std::uint64_t LoadGeometry::packed_bytes(const Slice& slice) const {
  return slice_bytes(slice_->tensors[slice.tensor].spec, slice);
}

std::vector<Copy> LoadGeometry::source_copies(const Slice& slice, const RunBytes& run) const {
  const TensorSpec& spec = slice_->tensors[slice.tensor].spec;
  const Box piece = to_byte_box(spec, slice.piece);
  // Where the piece would begin if all of its file were in memory; only bytes of the run are touched.
  const auto distance =
      static_cast<std::int64_t>(slice.piece_offset_bytes) - static_cast<std::int64_t>(run.begin_bytes);
  const View view{run.data + distance, dense_strides(piece.sizes, 1)};
  std::vector<Copy> result;
  for (const auto& box : slice_boxes(spec, slice)) {
    const auto found = copies(view, piece, box);
    result.insert(result.end(), found.begin(), found.end());
  }
  return result;
}

Result<std::vector<Copy>> LoadGeometry::target_copies(const Slice& slice) const {
  const TensorSpec& spec = slice_->tensors[slice.tensor].spec;
  const LocalTensor& local = *locals_[slice.tensor];
  VCKPT_TRY(const LocalBox* target, find_target(local, to_units(spec, slice.target)));
  std::vector<Copy> result;
  for (const auto& byte_box : slice_boxes(spec, slice)) {
    VCKPT_TRY(const Box box, bytes_to_units(spec, byte_box));
    const auto found = element_copies(target->view, target->box, box, unit_bytes(local.spec.dtype));
    result.insert(result.end(), found.begin(), found.end());
  }
  return result;
}

Result<void> LoadGeometry::fill_gaps() const {
  for (const auto& gap : slice_->gaps) {
    if (gap.outside != Outside::zero) continue;
    const LocalTensor& local = *locals_[gap.tensor];
    const Box stored = empty(gap.stored) ? gap.stored : to_units(local.spec, gap.stored);
    for (const auto& box : difference(to_units(local.spec, gap.target), stored)) {
      VCKPT_TRY(const auto targets, part_copies(local, box));
      for (const auto& target : targets) {
        for (std::uint64_t row = 0; row < target.rows; ++row) {
          std::memset(target.data + static_cast<std::int64_t>(row) * target.stride_bytes, 0, target.run_bytes);
        }
      }
    }
  }
  return {};
}

std::string LoadGeometry::describe_chunk(std::uint32_t read, std::uint64_t chunk) const {
  const std::uint64_t begin = chunk * chunk_bytes;
  const auto touches = [&](const Slice& slice) {
    const TensorSpec& spec = slice_->tensors[slice.tensor].spec;
    const std::uint64_t piece_end = slice.piece_offset_bytes + box_bytes(spec.dtype, slice.piece);
    return slice.piece_offset_bytes < begin + chunk_bytes && piece_end > begin;
  };
  const auto describe = [&](const Slice& slice) {
    return tensor_name(slice_->tensors[slice.tensor]) + " box " + to_string(slice.piece);
  };
  const auto find = [&](const auto& transfers) {
    for (const auto& transfer : transfers) {
      for (std::size_t i = 0; i < transfer.runs.size(); ++i) {
        if (transfer.runs[i] == read && touches(transfer.slices[i])) return describe(transfer.slices[i]);
      }
    }
    return std::string();
  };
  std::string found = find(slice_->receives);
  if (found.empty()) found = find(slice_->sends);
  return found.empty() ? "section '" + slice_->files[slice_->reads[read].file].file.section + "'" : found;
}

}  // namespace vckpt
