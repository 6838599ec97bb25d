// `vckpt export`: whole tensors out of a checkpoint, as the safetensors files that others read.
#pragma once

#include <cstdint>
#include <ostream>
#include <string>

#include "schema/result.h"

namespace vckpt::launch {

constexpr std::uint64_t shard_bytes_default = 5'000'000'000;  // as Hugging Face cuts models

struct ExportArguments {
  std::string checkpoint;
  std::string target;   // a name that ends in .safetensors: one file; else a folder of shards with an index
  std::string section;  // empty: `model` when there is one, else the only one
  std::uint64_t shard_bytes = shard_bytes_default;  // of data in one file of a folder; one tensor may be larger
  bool json = false;
};

// Every chunk is checked before its bytes are written; the target appears whole or not at all. corrupt: a chunk is
// damaged, naming section, tensor, box, file and chunk.
Result<int> export_checkpoint(const ExportArguments& arguments, std::ostream& out);

}  // namespace vckpt::launch
