#include "tests/support/memory_storage.h"

#include <algorithm>
#include <utility>

#include "runtime/storage_name.h"

namespace vckpt {

struct MemoryStorage::Written {
  std::string name;
  std::uint64_t length_bytes = 0;
  std::shared_ptr<Node> node;
  std::uint64_t written_bytes = 0;
  bool failed = false;  // a write did
};

MemoryStorage::MemoryStorage(Clock& clock, MemoryDisk& disk) : clock_(clock), disk_(disk) {}

MemoryStorage::~MemoryStorage() { *closed_ = true; }

template <typename T>
void MemoryStorage::submit(std::string what, Done<T> done, std::function<Result<T>()> apply,
                           std::function<void()> settle) {
  const MemoryDisk::Call call = disk_.next_call();
  const Duration step = call.time / 3;
  const auto fault = [what, call](FaultMoment moment) -> std::optional<Error> {
    if (!call.code || call.moment != moment) return std::nullopt;
    return Error{*call.code, "memory:/" + what + ": injected fault"};
  };
  const auto alive = [closed = closed_](std::function<void()> event) {
    return [closed, event = std::move(event)] {
      if (!*closed) event();
    };
  };
  // Three events: a simulation may end the process, or the machine, between any two of them.
  auto first = [this, what, done = std::move(done), apply = std::move(apply), settle = std::move(settle), fault, alive,
                step] {
    const auto before = fault(FaultMoment::before);
    const auto result = std::make_shared<Result<T>>(before ? Result<T>(*before) : apply());
    if (!*result && !before) *result = result->error().with_context("memory:/" + what);
    auto second = [this, done, settle, fault, alive, step, result] {
      const auto visible = fault(FaultMoment::visible);
      if (visible) *result = *visible;
      if (*result && settle) settle();
      if (const auto after = fault(FaultMoment::after)) *result = *after;
      clock_.call_at(clock_.now() + step, alive([done, result] { done(std::move(*result)); }));
    };
    clock_.call_at(clock_.now() + step, alive(std::move(second)));
  };
  clock_.call_at(clock_.now() + step, alive(std::move(first)));
}

Result<std::shared_ptr<MemoryDisk::Node>> MemoryStorage::folder(const std::string& name) const {
  VCKPT_TRY(const auto components, split_name(name));
  const auto found = disk_.find(components);
  if (found.blocked || (found.node && !found.node->folder)) return invalid("no folder");
  if (!found.node) return not_found("no such folder");
  return found.node;
}

Result<MemoryStorage::Place> MemoryStorage::place(const std::string& name) const {
  VCKPT_TRY(auto components, split_name(name));
  if (components.empty()) return invalid("the root is no file");
  Place place{nullptr, components.back()};
  components.pop_back();
  const auto found = disk_.find(components);
  if (found.blocked || (found.node && !found.node->folder)) return invalid("a file is in a folder's place");
  if (!found.node) return not_found("no such folder");
  place.folder = found.node;
  return place;
}

Result<std::shared_ptr<MemoryDisk::Node>> MemoryStorage::file(const std::string& name) const {
  VCKPT_TRY(const auto where, place(name));
  const auto child = where.folder->children.find(where.last);
  if (child == where.folder->children.end()) return not_found("no such file");
  if (child->second->folder) return invalid("no regular file");
  return child->second;
}

void MemoryStorage::probe(Done<void> done) {
  submit<void>(
      ": probe", std::move(done), [] { return Result<void>(); }, nullptr);
}

Result<void> MemoryStorage::apply_create_folder(const std::string& name) {
  VCKPT_TRY(const auto components, split_name(name));
  std::shared_ptr<Node> node = disk_.root();
  for (const auto& component : components) {
    auto& child = node->children[component];
    if (!child) {
      child = std::make_shared<Node>();
      child->folder = true;
    }
    if (!child->folder) return invalid("a file is in a folder's place");
    node = child;
  }
  return {};
}

// Fsync of one folder; one that was removed meanwhile has nothing to keep.
void MemoryStorage::settle(const std::vector<std::string>& components) {
  const auto found = disk_.find(components);
  if (found.node && found.node->folder) found.node->durable_children = found.node->children;
}

void MemoryStorage::settle_parent(const std::string& name) {
  auto components = split_name(name);
  components->pop_back();
  settle(*components);
}

void MemoryStorage::create_folder(const std::string& name, Done<void> done) {
  submit<void>(
      name + ": create folder", std::move(done), [this, name] { return apply_create_folder(name); },
      [this, name] {
        const auto components = split_name(name);
        for (auto end = components->begin(); end != components->end(); ++end) settle({components->begin(), end});
      });
}

Result<FileId> MemoryStorage::apply_create(const std::string& name, std::uint64_t length_bytes) {
  VCKPT_TRY(const auto where, place(name));
  if (where.folder->children.find(where.last) != where.folder->children.end()) return invalid("it exists");
  auto written = std::make_shared<Written>(Written{name, length_bytes, std::make_shared<Node>()});
  written->node->bytes.resize(length_bytes);
  if (!parts()) where.folder->children.emplace(where.last, written->node);
  files_.emplace(++last_file_, std::move(written));
  return last_file_;
}

void MemoryStorage::create_file(const std::string& name, std::uint64_t length_bytes, Done<FileId> done) {
  submit<FileId>(
      name + ": create file", std::move(done), [this, name, length_bytes] { return apply_create(name, length_bytes); },
      nullptr);
}

Result<void> MemoryStorage::apply_write(FileId id, std::uint64_t offset_bytes, std::span<const std::byte> bytes) {
  const auto found = files_.find(id);
  if (found == files_.end()) return invalid("no file is open under this number");
  Written& written = *found->second;
  if (offset_bytes > written.length_bytes || bytes.size() > written.length_bytes - offset_bytes) {
    return invalid(written.name + ": " + std::to_string(bytes.size()) + " bytes at " + std::to_string(offset_bytes) +
                   " leave the file's " + std::to_string(written.length_bytes) + " bytes");
  }
  const std::uint64_t grain = disk_.options().write_grain_bytes;
  const std::uint64_t end = offset_bytes + bytes.size();
  if (offset_bytes % grain != 0 || (end % grain != 0 && end != written.length_bytes)) {
    return invalid(written.name + ": " + std::to_string(bytes.size()) + " bytes at " + std::to_string(offset_bytes) +
                   " are no whole parts of " + std::to_string(grain) + " bytes");
  }
  std::copy(bytes.begin(), bytes.end(), written.node->bytes.begin() + static_cast<std::ptrdiff_t>(offset_bytes));
  written.written_bytes += bytes.size();
  return {};
}

void MemoryStorage::write(FileId id, std::uint64_t offset_bytes, std::span<const std::byte> bytes, Done<void> done) {
  const auto found = files_.find(id);
  const auto name = found == files_.end() ? std::string() : found->second->name;
  auto note = [written = found == files_.end() ? nullptr : found->second, done = std::move(done)](Result<void> result) {
    if (!result && written && result.error().code != Code::invalid) written->failed = true;
    done(std::move(result));
  };
  submit<void>(
      name + ": write", std::move(note),
      [this, id, offset_bytes, bytes] { return apply_write(id, offset_bytes, bytes); }, nullptr);
}

Result<void> MemoryStorage::apply_finish(const Written& written) {
  if (written.failed) return unavailable("a write to it failed");
  if (written.written_bytes != written.length_bytes) {
    return invalid(std::to_string(written.written_bytes) + " of its " + std::to_string(written.length_bytes) +
                   " bytes were written");
  }
  if (parts()) {
    VCKPT_TRY(const auto where, place(written.name));
    if (!where.folder->children.emplace(where.last, written.node).second) return invalid("it exists");
    where.folder->durable_children = where.folder->children;
  }
  written.node->synced = true;
  return {};
}

void MemoryStorage::finish(FileId id, Done<void> done) {
  const auto taken = files_.extract(id);
  const auto written = taken.empty() ? nullptr : taken.mapped();
  const std::string name = written ? written->name : std::string();
  submit<void>(
      name + ": finish", std::move(done),
      [this, written]() -> Result<void> {
        if (!written) return invalid("no file is open under this number");
        return apply_finish(*written);
      },
      [this, name] { settle_parent(name); });
}

void MemoryStorage::abandon(FileId id, Done<void> done) {
  const auto taken = files_.extract(id);
  const auto written = taken.empty() ? nullptr : taken.mapped();
  submit<void>((written ? written->name : std::string()) + ": abandon", std::move(done),
               [this, written]() -> Result<void> {
                 if (!written) return invalid("no file is open under this number");
                 const auto where = place(written->name);
                 if (!where) return {};
                 const auto child = where->folder->children.find(where->last);
                 if (child != where->folder->children.end() && child->second == written->node)
                   where->folder->children.erase(child);
                 return {};
               },
               nullptr);
}

Result<Published> MemoryStorage::apply_publish(const std::string& name, const Bytes& bytes) {
  VCKPT_TRY(const auto where, place(name));
  auto& child = where.folder->children[where.last];
  if (child && child->folder) return invalid("no regular file");
  if (child) return child->bytes == bytes ? Published::equal : Published::other;
  child = std::make_shared<Node>();
  child->bytes = bytes;
  child->synced = true;
  if (parts()) where.folder->durable_children = where.folder->children;
  return Published::made;
}

void MemoryStorage::publish_once(const std::string& name, Bytes bytes, Done<Published> done) {
  submit<Published>(
      name + ": publish", std::move(done),
      [this, name, bytes = std::move(bytes)] { return apply_publish(name, bytes); },
      [this, name] { settle_parent(name); });
}

void MemoryStorage::length(const std::string& name, Done<std::uint64_t> done) {
  submit<std::uint64_t>(
      name + ": length", std::move(done),
      [this, name]() -> Result<std::uint64_t> {
        VCKPT_TRY(const auto node, file(name));
        return std::uint64_t{node->bytes.size()};
      },
      nullptr);
}

void MemoryStorage::read(const std::string& name, std::uint64_t offset_bytes, std::span<std::byte> target,
                         Done<void> done) {
  submit<void>(
      name + ": read", std::move(done),
      [this, name, offset_bytes, target]() -> Result<void> {
        VCKPT_TRY(const auto node, file(name));
        if (offset_bytes > node->bytes.size() || target.size() > node->bytes.size() - offset_bytes) {
          return corrupt("the file has " + std::to_string(node->bytes.size()) + " bytes, " +
                         std::to_string(target.size()) + " were wanted at " + std::to_string(offset_bytes));
        }
        std::copy_n(node->bytes.begin() + static_cast<std::ptrdiff_t>(offset_bytes), target.size(), target.begin());
        return {};
      },
      nullptr);
}

void MemoryStorage::read_record(const std::string& name, std::uint64_t bytes_max, Done<Bytes> done) {
  submit<Bytes>(
      name + ": read record", std::move(done),
      [this, name, bytes_max]() -> Result<Bytes> {
        VCKPT_TRY(const auto node, file(name));
        if (node->bytes.size() > bytes_max) {
          return corrupt("it has " + std::to_string(node->bytes.size()) + " bytes, at most " +
                         std::to_string(bytes_max) + " are allowed");
        }
        return node->bytes;
      },
      nullptr);
}

void MemoryStorage::list(const std::string& name, Done<std::vector<StorageEntry>> done) {
  submit<std::vector<StorageEntry>>(
      name + ": list", std::move(done),
      [this, name]() -> Result<std::vector<StorageEntry>> {
        std::vector<StorageEntry> entries;
        const auto node = folder(name);
        if (!node && node.error().code == Code::not_found) return entries;
        if (!node) return node.error();
        for (const auto& [entry, child] : (*node)->children) {
          entries.push_back({entry, child->folder, child->folder ? 0 : child->bytes.size()});
        }
        return entries;
      },
      nullptr);
}

void MemoryStorage::sync_folder(const std::string& name, Done<void> done) {
  submit<void>(
      name + ": sync folder", std::move(done),
      [this, name]() -> Result<void> {
        VCKPT_TRY(const auto node, folder(name));
        node->durable_children = node->children;
        return {};
      },
      nullptr);
}

void MemoryStorage::remove(const std::string& name, Done<void> done) {
  submit<void>(
      name + ": remove", std::move(done),
      [this, name]() -> Result<void> {
        const auto where = place(name);
        if (!where && where.error().code == Code::not_found) return {};
        if (!where) return where.error();
        where->folder->children.erase(where->last);
        if (parts()) where->folder->durable_children = where->folder->children;
        return {};
      },
      nullptr);
}

}  // namespace vckpt
