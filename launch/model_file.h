// Tensors of safetensors files, mapped read-only. The files must not shrink while they are open.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "launch/model.h"
#include "schema/layout.h"
#include "schema/result.h"

namespace vckpt::launch {

// Threading: immutable once open.
class ModelFile {
 public:
  // All tensors of one model, cut over files as its publisher did. Errors name the file: not_found; invalid: not a
  // regular file, no permission, one tensor in two files; corrupt: not a safetensors file.
  static Result<std::shared_ptr<const ModelFile>> open(const std::vector<std::string>& paths);

  ~ModelFile();
  ModelFile(const ModelFile&) = delete;
  ModelFile& operator=(const ModelFile&) = delete;

  const std::vector<TensorSpec>& tensors() const { return tensors_; }
  // Dense, row-major. Empty when there is no such tensor.
  std::span<const std::byte> bytes(const std::string& fqn) const;

 private:
  ModelFile() = default;
  Result<void> add(const std::string& path);

  std::vector<std::span<std::byte>> mappings_;
  std::vector<TensorSpec> tensors_;
  std::unordered_map<std::string, std::span<const std::byte>> bytes_;
};

// A model that the command line names: presets by model_named, else safetensors files. `file` is null for presets.
struct SourceModel {
  Model model;
  std::shared_ptr<const ModelFile> file;
};
Result<SourceModel> open_model(const std::vector<std::string>& names);

}  // namespace vckpt::launch
