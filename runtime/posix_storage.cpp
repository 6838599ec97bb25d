#include "runtime/posix_storage.h"

#include <atomic>
#include <utility>

#include "runtime/posix_files.h"

namespace vckpt {

struct PosixStorage::WrittenFile {
  DataFile data;
  std::atomic<std::uint64_t> written_bytes = 0;
  std::atomic<bool> failed = false;  // a write did
};

PosixStorage::PosixStorage(Actor& actor, std::string root, PosixOptions options)
    : root_(std::make_shared<PosixRoot>(std::move(root))),
      outbox_(std::make_shared<Outbox>(actor)),
      options_(options),
      pool_("vckpt-storage", options.threads, options.calls_max) {}

PosixStorage::~PosixStorage() { static_cast<void>(close(pool_close_wait)); }

bool PosixStorage::close(Duration wait) {
  outbox_->close();
  const bool ended = pool_.close(wait);
  outbox_->drop();
  return ended;
}

std::string PosixStorage::root() const { return root_->path(); }

template <typename T>
void PosixStorage::complete(Done<T> done, Result<T> result) {
  outbox_->post([outbox = outbox_, done = std::move(done), result = std::move(result)]() mutable {
    if (!outbox->closed()) done(std::move(result));
  });
}

template <typename T>
void PosixStorage::submit(Done<T> done, std::function<Result<T>(PosixRoot&)> work) {
  // The task hands `done` on, so that the last to hold it is the actor.
  auto handed = std::make_shared<Done<T>>(std::move(done));
  auto task = [outbox = outbox_, root = root_, handed, work = std::move(work)]() mutable {
    auto completion = [outbox, result = work(*root), done = std::move(*handed)]() mutable {
      if (!outbox->closed()) done(std::move(result));
    };
    work = nullptr;
    outbox->post(std::move(completion));
  };
  if (pool_.submit(std::move(task))) return;
  complete<T>(std::move(*handed), exhausted(root_->path() + ": more than " + std::to_string(options_.calls_max) +
                                            " storage calls are waiting"));
}

void PosixStorage::probe(Done<void> done) {
  submit<void>(std::move(done), [how = options_.publishing](PosixRoot& root) { return vckpt::probe(root, how); });
}

void PosixStorage::create_folder(const std::string& name, Done<void> done) {
  submit<void>(std::move(done), [name](PosixRoot& root) { return root.create_folder(name); });
}

void PosixStorage::create_file(const std::string& name, std::uint64_t length_bytes, Done<FileId> done) {
  // The table belongs to the actor: the file enters it when the completion runs.
  auto file = std::make_shared<WrittenFile>();
  auto enter = [this, file, done = std::move(done)](Result<void> created) {
    if (!created) return done(created.error());
    files_.emplace(++last_file_, file);
    done(last_file_);
  };
  submit<void>(std::move(enter), [file, name, length_bytes](PosixRoot& root) -> Result<void> {
    VCKPT_TRY(file->data, vckpt::create_file(root, name, length_bytes));
    return {};
  });
}

void PosixStorage::write(FileId id, std::uint64_t offset_bytes, std::span<const std::byte> bytes, Done<void> done) {
  const auto found = files_.find(id);
  if (found == files_.end())
    return complete<void>(std::move(done), invalid("write: no file is open under this number"));
  const auto& file = found->second;
  const std::uint64_t length_bytes = file->data.length_bytes;
  if (offset_bytes > length_bytes || bytes.size() > length_bytes - offset_bytes) {
    return complete<void>(
        std::move(done),
        invalid(root_->full_name(file->data.name) + ": write: " + std::to_string(bytes.size()) + " bytes at " +
                std::to_string(offset_bytes) + " leave the file's " + std::to_string(length_bytes) + " bytes"));
  }
  submit<void>(std::move(done), [file, offset_bytes, bytes](PosixRoot& root) -> Result<void> {
    auto written = vckpt::write(root, file->data, offset_bytes, bytes);
    if (written) file->written_bytes += bytes.size();
    if (!written) file->failed = true;
    return written;
  });
}

std::shared_ptr<PosixStorage::WrittenFile> PosixStorage::take(FileId id) {
  auto node = files_.extract(id);
  return node.empty() ? nullptr : std::move(node.mapped());
}

void PosixStorage::finish(FileId id, Done<void> done) {
  const auto file = take(id);
  if (!file) return complete<void>(std::move(done), invalid("finish: no file is open under this number"));
  submit<void>(std::move(done), [file](PosixRoot& root) -> Result<void> {
    const auto what = root.full_name(file->data.name) + ": finish: ";
    if (file->failed) return unavailable(what + "a write to it failed");
    if (file->written_bytes != file->data.length_bytes) {
      return invalid(what + std::to_string(file->written_bytes) + " of its " + std::to_string(file->data.length_bytes) +
                     " bytes were written");
    }
    return vckpt::finish(root, file->data);
  });
}

void PosixStorage::abandon(FileId id, Done<void> done) {
  const auto file = take(id);
  if (!file) return complete<void>(std::move(done), invalid("abandon: no file is open under this number"));
  submit<void>(std::move(done), [file](PosixRoot& root) { return vckpt::abandon(root, file->data); });
}

void PosixStorage::publish_once(const std::string& name, Bytes bytes, Done<Published> done) {
  submit<Published>(std::move(done), [name, bytes = std::move(bytes), how = options_.publishing](PosixRoot& root) {
    return vckpt::publish_once(root, how, name, bytes);
  });
}

void PosixStorage::length(const std::string& name, Done<std::uint64_t> done) {
  submit<std::uint64_t>(std::move(done), [name](PosixRoot& root) { return file_length(root, name); });
}

void PosixStorage::read(const std::string& name, std::uint64_t offset_bytes, std::span<std::byte> target,
                        Done<void> done) {
  submit<void>(std::move(done),
               [name, offset_bytes, target](PosixRoot& root) { return vckpt::read(root, name, offset_bytes, target); });
}

void PosixStorage::read_record(const std::string& name, std::uint64_t bytes_max, Done<Bytes> done) {
  submit<Bytes>(std::move(done),
                [name, bytes_max](PosixRoot& root) { return vckpt::read_record(root, name, bytes_max); });
}

void PosixStorage::list(const std::string& folder, Done<std::vector<StorageEntry>> done) {
  submit<std::vector<StorageEntry>>(std::move(done), [folder](PosixRoot& root) { return root.list(folder); });
}

void PosixStorage::sync_folder(const std::string& folder, Done<void> done) {
  submit<void>(std::move(done), [folder](PosixRoot& root) { return root.sync_folder(folder); });
}

void PosixStorage::remove(const std::string& name, Done<void> done) {
  submit<void>(std::move(done), [name](PosixRoot& root) { return root.remove(name); });
}

}  // namespace vckpt
