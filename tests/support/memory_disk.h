// What a storage of the simulation lies on: a tree in memory that knows what is durable, and the faults to come. One
// disk serves any number of MemoryStorages, as one file system serves many processes.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "runtime/storage.h"
#include "runtime/time_point.h"

namespace vckpt {

enum class DiskKind : std::uint8_t {
  posix = 1,  // visible before it is durable: file and folder are synced apart
  parts = 2,  // an object store: files of numbered parts that appear when they are finished, all durable at once
};

struct DiskOptions {
  DiskKind kind = DiskKind::posix;
  std::uint64_t seed = 0;
  std::uint64_t write_grain_bytes = 1;
  // Every call takes a time between these, by seed; so calls that overlap complete in any order.
  Duration call_time_min = std::chrono::microseconds(10);
  Duration call_time_max = std::chrono::microseconds(1000);
};

// The object store that the storage seam has to bear: parts of 5 MiB.
inline DiskOptions parts_options(std::uint64_t seed) {
  return DiskOptions{.kind = DiskKind::parts, .seed = seed, .write_grain_bytes = 5 << 20};
}

// Which moment of a call fails. Calls that only read have no `visible`.
enum class FaultMoment : std::uint8_t {
  before = 1,   // nothing happened
  visible = 2,  // done, but not durable
  after = 3,    // done and durable: only the answer is lost
};

enum class Survivors : std::uint8_t {
  none = 1,  // exactly what was made durable
  some = 2,  // by seed, any of the rest too, files torn
};

class MemoryDisk {
 public:
  explicit MemoryDisk(DiskOptions options) : options_(options), random_(options.seed) {}
  MemoryDisk(const MemoryDisk&) = delete;
  MemoryDisk& operator=(const MemoryDisk&) = delete;

  // Faults for the k-th call from now over all storages of the disk (0: the next). Each fires once.
  void fail_call(std::uint64_t k, Code code, FaultMoment moment = FaultMoment::before);
  void slow_call(std::uint64_t k, Duration more);
  void clear_faults();
  std::uint64_t calls() const { return calls_; }
  std::uint64_t faults_fired() const { return faults_fired_; }

  // The machine loses power: what is not durable goes. Storages that were in use are destroyed before.
  void cut_power(Survivors survivors);

  // For tests that look at or damage what lies there. Names of all files, sorted; nothing when there is no such file.
  std::vector<std::string> files() const;
  std::optional<Bytes> contents(const std::string& name) const;
  // False when there is no such byte.
  bool flip_bit(const std::string& name, std::uint64_t offset_bytes, unsigned bit);

  // For MemoryStorage.
  struct Node {
    bool folder = false;
    bool synced = false;  // the bytes are durable
    Bytes bytes;
    std::map<std::string, std::shared_ptr<Node>> children;
    std::map<std::string, std::shared_ptr<Node>> durable_children;
  };
  struct Call {
    Duration time;  // until it takes effect, and again until it answers
    std::optional<Code> code;
    FaultMoment moment = FaultMoment::before;
  };
  const DiskOptions& options() const { return options_; }
  const std::shared_ptr<Node>& root() const { return root_; }
  Call next_call();
  // Null when there is none. A component that is a file ends the search: `blocked`.
  struct Found {
    std::shared_ptr<Node> node;
    bool blocked = false;
  };
  Found find(const std::vector<std::string>& components) const;

 private:
  struct Fault {
    std::optional<Code> code;
    FaultMoment moment = FaultMoment::before;
    Duration more{};
  };
  static std::shared_ptr<Node> make_root();
  void cut_power(Node& folder, Survivors survivors);

  DiskOptions options_;
  std::mt19937_64 random_;
  std::shared_ptr<Node> root_ = make_root();
  std::map<std::uint64_t, Fault> faults_;
  std::uint64_t calls_ = 0;
  std::uint64_t faults_fired_ = 0;
};

}  // namespace vckpt
