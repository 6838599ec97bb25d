// Files that appear whole or not at all: they are made in a folder beside their place, and moved when all are durable.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "schema/result.h"

namespace vckpt::launch {

// A file of known length, mapped for writing; its space is reserved, so that no write fails for want of it.
class OutputFile {
 public:
  // exhausted: no space; invalid: no permission, it exists.
  static Result<std::unique_ptr<OutputFile>> create(const std::string& path, std::uint64_t length_bytes);
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  std::span<std::byte> bytes() const { return bytes_; }
  Result<void> sync();

 private:
  OutputFile(std::string path, std::span<std::byte> bytes) : path_(std::move(path)), bytes_(bytes) {}

  const std::string path_;
  std::span<std::byte> bytes_;
};

class OutputFolder {
 public:
  // Makes an empty folder beside `target`. invalid: `target` exists, or its parent cannot be written; not_found: no
  // parent.
  static Result<std::unique_ptr<OutputFolder>> create(const std::string& target);
  // Removes what was not moved.
  ~OutputFolder();
  OutputFolder(const OutputFolder&) = delete;
  OutputFolder& operator=(const OutputFolder&) = delete;

  std::string file(const std::string& name) const { return folder_ + "/" + name; }
  // The folder becomes `target`, or the one file `name` in it does.
  Result<void> move_folder();
  Result<void> move_file(const std::string& name);

 private:
  OutputFolder(std::string target, std::string folder) : target_(std::move(target)), folder_(std::move(folder)) {}

  const std::string target_;
  const std::string folder_;
};

}  // namespace vckpt::launch
