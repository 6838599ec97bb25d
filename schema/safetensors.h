// safetensors headers: strict reading of foreign files, and writing of our own. No I/O: callers give the bytes.
// Reading follows the format's own rules: an 8-byte little-endian header length (at most 100 MB), a JSON object, no
// duplicate keys, offsets that cover the data exactly without holes or overlaps, sizes that match shape and dtype.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "dtype.h"
#include "layout.h"
#include "plan.h"
#include "result.h"

namespace vckpt::safetensors {

constexpr std::uint64_t header_length_max = 100'000'000;
constexpr std::uint64_t data_alignment_bytes = 4096;  // of the files we write

struct Tensor {
  std::string name;
  DType dtype = DType::u8;
  Dims shape;
  std::uint64_t begin_bytes = 0;  // from the data start
  std::uint64_t end_bytes = 0;
  bool operator==(const Tensor&) const = default;
};

struct Header {
  std::uint64_t header_bytes = 0;  // 8 + header length: where the data starts
  std::uint64_t data_bytes = 0;
  std::vector<Tensor> tensors;  // in data order
  std::map<std::string, std::string> metadata;
};

// The total size of length word and header, from the first 8 bytes of a file of `file_bytes`; corrupt when impossible.
Result<std::uint64_t> header_bytes(std::span<const std::byte> first_8_bytes, std::uint64_t file_bytes);

// Parses the whole header (length word included). corrupt, with the tensor's name, on any breach of the format.
Result<Header> parse(std::span<const std::byte> header, std::uint64_t file_bytes);

// Writes length word and header, padded with spaces so that data starts at a multiple of `alignment_bytes`.
// Tensors must be in data order, back to back from 0. exhausted: the header would exceed header_length_max.
Result<std::string> write(const std::vector<Tensor>& tensors, const std::map<std::string, std::string>& metadata,
                          std::uint64_t alignment_bytes = data_alignment_bytes);

// The header of the data file that holds these pieces of a plan: names by names::piece, types without a safetensors
// name as U8 (their true dtypes in the metadata under `vckpt.dtype:<name>`).
Result<std::string> write_data_file_header(const std::vector<TensorSpec>& tensors,
                                           const std::vector<PlacedPiece>& pieces);

}  // namespace vckpt::safetensors
