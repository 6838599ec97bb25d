#include "launch/root.h"

#include <sys/stat.h>

#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstring>

#include "schema/codec.h"
#include "schema/names.h"

namespace vckpt::launch {

namespace {

constexpr std::chrono::seconds storage_deadline{120};
constexpr std::uint64_t run_record_bytes_max = 64 * 1024;

Result<void> check_folder(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) {
    const auto text = "root " + path + ": " + std::strerror(errno);
    return errno == ENOENT ? not_found(text) : invalid(text);
  }
  if (!S_ISDIR(status.st_mode)) return invalid("root " + path + ": not a folder");
  return {};
}

}  // namespace

Result<CheckpointName> parse_checkpoint_name(std::string_view text) {
  if (text.empty()) return invalid("an empty name for a checkpoint; expected ROOT, ROOT@STEP or ROOT@ID");
  const auto at = text.rfind('@');
  if (at == std::string_view::npos || at == 0) return CheckpointName{std::string(text), newest};
  const auto root = std::string(text.substr(0, at));
  const auto tail = text.substr(at + 1);
  if (const auto id = parse_checkpoint_id(tail)) return CheckpointName{root, *id};
  std::uint64_t step = 0;
  const auto [end, error] = std::from_chars(tail.data(), tail.data() + tail.size(), step);
  if (error == std::errc() && end == tail.data() + tail.size()) return CheckpointName{root, Step{step}};
  if (tail.find('/') != std::string_view::npos) return CheckpointName{std::string(text), newest};
  return invalid("checkpoint " + std::string(text) + ": '" + std::string(tail) +
                 "' is neither a step nor an id; expected ROOT, ROOT@STEP or ROOT@ID");
}

Root::Root(const std::string& path) : storage_(path, storage_deadline) {}

Result<std::unique_ptr<Root>> Root::open(const std::string& path) {
  VCKPT_TRY_VOID(check_folder(path));
  std::unique_ptr<Root> root(new Root(path));
  const auto record = root->storage_.read_record(std::string(names::run), run_record_bytes_max);
  if (!record) {
    if (record.error().code != Code::not_found) return record.error().with_context("root " + path);
    return not_found("root " + path + ": no RUN record in it; nothing was ever saved there");
  }
  auto run = decode_run(*record);
  if (!run) return run.error().with_context("root " + path + ": RUN");
  root->run_ = *std::move(run);
  return root;
}

Result<Catalog> Root::catalog() {
  return storage_.wait<Catalog>("read the catalog of " + path(), [](Storage& storage, Storage::Done<Catalog> done) {
    read_catalog(storage, std::move(done));
  });
}

Result<CheckpointMetadata> Root::metadata(const Decision& decision) {
  return storage_.wait<CheckpointMetadata>("read " + decision.id.name(),
                                           [decision](Storage& storage, Storage::Done<CheckpointMetadata> done) {
                                             read_checkpoint(storage, decision, std::move(done));
                                           });
}

Result<CheckpointMetadata> Root::find(const Selector& selector) {
  VCKPT_TRY(const auto catalog, this->catalog());
  VCKPT_TRY(const auto* decision, resolve(catalog, selector, path()));
  return metadata(*decision);
}

}  // namespace vckpt::launch
