#include "tests/support/memory_disk.h"

#include <algorithm>
#include <utility>

#include "runtime/storage_name.h"

namespace vckpt {
namespace {

void append_files(const MemoryDisk::Node& folder, const std::string& prefix, std::vector<std::string>& names) {
  for (const auto& [name, node] : folder.children) {
    if (node->folder) {
      append_files(*node, prefix + name + "/", names);
    } else {
      names.push_back(prefix + name);
    }
  }
}

}  // namespace

std::shared_ptr<MemoryDisk::Node> MemoryDisk::make_root() {
  auto root = std::make_shared<Node>();
  root->folder = true;
  return root;
}

void MemoryDisk::fail_call(std::uint64_t k, Code code, FaultMoment moment) {
  Fault& fault = faults_[calls_ + k];
  fault.code = code;
  fault.moment = moment;
}

void MemoryDisk::slow_call(std::uint64_t k, Duration more) { faults_[calls_ + k].more += more; }

void MemoryDisk::clear_faults() { faults_.clear(); }

MemoryDisk::Call MemoryDisk::next_call() {
  const auto range = static_cast<std::uint64_t>((options_.call_time_max - options_.call_time_min).count());
  Call call{options_.call_time_min + Duration(range == 0 ? 0 : random_() % range), std::nullopt, FaultMoment::before};
  const auto fault = faults_.find(calls_++);
  if (fault == faults_.end()) return call;
  ++faults_fired_;
  call.time += fault->second.more;
  call.code = fault->second.code;
  call.moment = fault->second.moment;
  faults_.erase(fault);
  return call;
}

MemoryDisk::Found MemoryDisk::find(const std::vector<std::string>& components) const {
  std::shared_ptr<Node> node = root_;
  for (const auto& component : components) {
    if (!node->folder) return {nullptr, true};
    const auto child = node->children.find(component);
    if (child == node->children.end()) return {nullptr, false};
    node = child->second;
  }
  return {node, false};
}

void MemoryDisk::cut_power(Survivors survivors) { cut_power(*root_, survivors); }

void MemoryDisk::cut_power(Node& folder, Survivors survivors) {
  const auto survives = [this, survivors] { return survivors == Survivors::some && random_() % 2 == 0; };
  auto after = folder.durable_children;
  // A name that was made or removed since the last sync may have reached the disk all the same.
  for (const auto& [name, node] : folder.children) {
    if (after.find(name) == after.end() && survives()) after.emplace(name, node);
  }
  for (const auto& [name, node] : folder.durable_children) {
    if (folder.children.find(name) == folder.children.end() && survives()) after.erase(name);
  }
  folder.children = after;
  folder.durable_children = std::move(after);
  for (const auto& [name, node] : folder.children) {
    if (node->folder) {
      cut_power(*node, survivors);
    } else if (!node->synced) {
      // Unsynced bytes: gone, or some of them.
      if (survives()) {
        const std::size_t kept = node->bytes.empty() ? 0 : random_() % (node->bytes.size() + 1);
        std::fill(node->bytes.begin() + static_cast<std::ptrdiff_t>(kept), node->bytes.end(), std::byte{0});
      } else {
        node->bytes.clear();
      }
      node->synced = true;
    }
  }
}

std::vector<std::string> MemoryDisk::files() const {
  std::vector<std::string> names;
  append_files(*root_, "", names);
  std::sort(names.begin(), names.end());
  return names;
}

std::optional<Bytes> MemoryDisk::contents(const std::string& name) const {
  const auto components = split_name(name);
  const auto node = components ? find(*components).node : nullptr;
  if (!node || node->folder) return std::nullopt;
  return node->bytes;
}

bool MemoryDisk::flip_bit(const std::string& name, std::uint64_t offset_bytes, unsigned bit) {
  const auto components = split_name(name);
  const auto node = components ? find(*components).node : nullptr;
  if (!node || node->folder || offset_bytes >= node->bytes.size()) return false;
  node->bytes[offset_bytes] ^= static_cast<std::byte>(1U << bit % 8);
  return true;
}

}  // namespace vckpt
