#include "launch/model_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "runtime/descriptor.h"
#include "schema/safetensors.h"

namespace vckpt::launch {

namespace {

Error system_error(const std::string& path, int number) {
  const auto text = "model file " + path + ": " + std::strerror(number);
  if (number == ENOENT || number == ENOTDIR) return not_found(text);
  return number == EIO ? unavailable(text) : invalid(text);
}

Result<std::span<std::byte>> map(const std::string& path) {
  // Non-blocking, so that a FIFO without a writer does not hold us.
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file) return system_error(path, errno);
  struct stat status {};
  if (::fstat(file.number(), &status) != 0) return system_error(path, errno);
  if (!S_ISREG(status.st_mode)) return invalid("model file " + path + ": not a regular file");
  if (status.st_size < 8) return corrupt("model file " + path + ": " + std::to_string(status.st_size) + " bytes long");
  const auto length = static_cast<std::size_t>(status.st_size);
  void* memory = ::mmap(nullptr, length, PROT_READ, MAP_PRIVATE, file.number(), 0);
  if (memory == MAP_FAILED) return system_error(path, errno);
  return std::span<std::byte>(static_cast<std::byte*>(memory), length);
}

}  // namespace

Result<std::shared_ptr<const ModelFile>> ModelFile::open(const std::vector<std::string>& paths) {
  std::shared_ptr<ModelFile> model(new ModelFile);
  for (const auto& path : paths) VCKPT_TRY_VOID(model->add(path));
  return std::shared_ptr<const ModelFile>(std::move(model));
}

ModelFile::~ModelFile() {
  for (const auto& mapping : mappings_) ::munmap(mapping.data(), mapping.size());
}

Result<void> ModelFile::add(const std::string& path) {
  VCKPT_TRY(const auto mapping, map(path));
  mappings_.push_back(mapping);
  const auto context = "model file " + path;
  const auto header_bytes = safetensors::header_bytes(mapping.first(8), mapping.size());
  if (!header_bytes) return header_bytes.error().with_context(context);
  const auto header = safetensors::parse(mapping.first(*header_bytes), mapping.size());
  if (!header) return header.error().with_context(context);
  for (const auto& tensor : header->tensors) {
    const auto data = mapping.subspan(header->header_bytes + tensor.begin_bytes, tensor.end_bytes - tensor.begin_bytes);
    if (!bytes_.emplace(tensor.name, data).second) {
      return invalid(context + ": tensor " + tensor.name + " stands in another of the files too");
    }
    tensors_.push_back({tensor.name, tensor.dtype, tensor.shape});
  }
  return {};
}

std::span<const std::byte> ModelFile::bytes(const std::string& fqn) const {
  const auto found = bytes_.find(fqn);
  return found == bytes_.end() ? std::span<const std::byte>() : found->second;
}

Result<SourceModel> open_model(const std::vector<std::string>& names) {
  if (names.empty()) return invalid("no model: give " + known_models() + ", or a .safetensors file");
  const auto is_preset = [](const std::string& name) { return name.starts_with("llama:"); };
  if (std::any_of(names.begin(), names.end(), is_preset)) {
    if (names.size() > 1) return invalid("model '" + names[0] + "' with others: give one preset, or files");
    VCKPT_TRY(auto model, model_named(names[0]));
    return SourceModel{std::move(model), nullptr};
  }
  VCKPT_TRY(auto file, ModelFile::open(names));
  auto model = model_of_tensors(std::filesystem::path(names[0]).filename().string(), file->tensors());
  return SourceModel{std::move(model), std::move(file)};
}

}  // namespace vckpt::launch
