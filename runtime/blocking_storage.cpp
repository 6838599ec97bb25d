#include "runtime/blocking_storage.h"

#include <chrono>
#include <utility>

namespace vckpt {

BlockingStorage::BlockingStorage(std::string root, Duration deadline, PosixOptions options)
    : root_(std::move(root)), deadline_(deadline), actor_("vckpt-blocking") {
  actor_.call([this, options] { storage_ = std::make_unique<PosixStorage>(actor_, root_, options); });
}

BlockingStorage::~BlockingStorage() {
  actor_.call([this] { storage_.reset(); });
}

Error BlockingStorage::late(std::string_view what) const {
  const auto seconds = std::chrono::duration<double>(deadline_).count();
  return unavailable(root_ + ": " + std::string(what) + ": no answer within " + std::to_string(seconds) + " s");
}

Result<void> BlockingStorage::probe() {
  return wait<void>("probe", [](Storage& storage, auto done) { storage.probe(std::move(done)); });
}

Result<void> BlockingStorage::create_folder(const std::string& name) {
  return wait<void>("create folder " + name,
                    [name](Storage& storage, auto done) { storage.create_folder(name, std::move(done)); });
}

Result<FileId> BlockingStorage::create_file(const std::string& name, std::uint64_t length_bytes) {
  return wait<FileId>("create file " + name, [name, length_bytes](Storage& storage, auto done) {
    storage.create_file(name, length_bytes, std::move(done));
  });
}

Result<void> BlockingStorage::write(FileId file, std::uint64_t offset_bytes, Bytes bytes) {
  const auto held = std::make_shared<const Bytes>(std::move(bytes));
  return wait<void>("write", [file, offset_bytes, held](Storage& storage, auto done) {
    storage.write(file, offset_bytes, *held, [held, done](Result<void> written) { done(std::move(written)); });
  });
}

Result<void> BlockingStorage::finish(FileId file) {
  return wait<void>("finish", [file](Storage& storage, auto done) { storage.finish(file, std::move(done)); });
}

Result<void> BlockingStorage::abandon(FileId file) {
  return wait<void>("abandon", [file](Storage& storage, auto done) { storage.abandon(file, std::move(done)); });
}

Result<Published> BlockingStorage::publish_once(const std::string& name, Bytes bytes) {
  return wait<Published>("publish " + name, [name, bytes = std::move(bytes)](Storage& storage, auto done) {
    storage.publish_once(name, bytes, std::move(done));
  });
}

Result<std::uint64_t> BlockingStorage::length(const std::string& name) {
  return wait<std::uint64_t>("length of " + name,
                             [name](Storage& storage, auto done) { storage.length(name, std::move(done)); });
}

Result<Bytes> BlockingStorage::read(const std::string& name, std::uint64_t offset_bytes, std::uint64_t length_bytes) {
  return wait<Bytes>("read " + name, [name, offset_bytes, length_bytes](Storage& storage, auto done) {
    const auto target = std::make_shared<Bytes>(length_bytes);
    storage.read(name, offset_bytes, *target, [target, done](Result<void> result) {
      if (!result) return done(result.error());
      done(std::move(*target));
    });
  });
}

Result<Bytes> BlockingStorage::read_record(const std::string& name, std::uint64_t bytes_max) {
  return wait<Bytes>("read record " + name, [name, bytes_max](Storage& storage, auto done) {
    storage.read_record(name, bytes_max, std::move(done));
  });
}

Result<std::vector<StorageEntry>> BlockingStorage::list(const std::string& folder) {
  return wait<std::vector<StorageEntry>>(
      "list " + folder, [folder](Storage& storage, auto done) { storage.list(folder, std::move(done)); });
}

Result<void> BlockingStorage::sync_folder(const std::string& folder) {
  return wait<void>("sync folder " + folder,
                    [folder](Storage& storage, auto done) { storage.sync_folder(folder, std::move(done)); });
}

Result<void> BlockingStorage::remove(const std::string& name) {
  return wait<void>("remove " + name, [name](Storage& storage, auto done) { storage.remove(name, std::move(done)); });
}

}  // namespace vckpt
