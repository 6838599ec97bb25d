// Where the bytes of a load come from and go to: the slices of a LoadSlice as copies between read runs and this rank's
// memory. Checked once against both, so that nothing a plan says can reach outside of them.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "runtime/memory.h"
#include "schema/message.h"
#include "schema/result.h"
#include "worker/tensor_table.h"

namespace vckpt {

// The chunks that one ReadRun brings into memory.
struct RunBytes {
  std::byte* data = nullptr;
  std::uint64_t begin_bytes = 0;  // from the data start of the file
  std::uint64_t length_bytes = 0;
};

class LoadGeometry {
 public:
  // internal: a plan that contradicts itself or what this rank holds. invalid, naming the tensor: a cast that is not
  // one of can_cast.
  static Result<LoadGeometry> make(std::shared_ptr<const LoadSlice> slice, std::shared_ptr<const TensorTable> table,
                                   Rank self);

  // begin and length; no data.
  RunBytes run(std::uint32_t read) const;
  std::string file_name(std::uint32_t read) const;
  DType stored_type(const Slice& slice) const { return slice_->tensors[slice.tensor].spec.dtype; }
  DType local_type(const Slice& slice) const { return locals_[slice.tensor]->spec.dtype; }
  bool casts(const Slice& slice) const { return stored_type(slice) != local_type(slice); }
  std::uint64_t packed_bytes(const Slice& slice) const;

  // In the packed order of the slice: out of a run, and into this rank's memory (of whole local elements).
  std::vector<Copy> source_copies(const Slice& slice, const RunBytes& run) const;
  Result<std::vector<Copy>> target_copies(const Slice& slice) const;

  // Zeroes what the stored tensors do not reach, where that was asked for.
  Result<void> fill_gaps() const;

  // `section 'model': tensor 'w' box [0, 4)x[0, 8)` of a piece that chunk `chunk` of a run holds.
  std::string describe_chunk(std::uint32_t read, std::uint64_t chunk) const;

 private:
  Result<void> check_files() const;
  Result<void> check_slice(const Slice& slice, Round round, const std::uint32_t* read, bool is_target) const;
  Result<void> check_transfers(Rank self) const;

  std::shared_ptr<const LoadSlice> slice_;
  std::shared_ptr<const TensorTable> table_;
  std::vector<const LocalTensor*> locals_;  // of slice_->tensors; null for those only sent
};

}  // namespace vckpt
