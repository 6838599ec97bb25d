#include "tests/support/memory_storage.h"

#include <random>

#include "tests/runtime/storage_contract.h"
#include "tests/support/catch.h"
#include "tests/support/virtual_clock.h"

using namespace vckpt;
using namespace std::chrono_literals;

namespace {

class MemoryFixture final : public StorageFixture {
 public:
  explicit MemoryFixture(DiskOptions options = {}) : disk(options) { restart(); }
  Storage& storage() override { return *storage_; }
  void run(std::function<void()> begin, std::function<bool()> finished) override {
    begin();
    REQUIRE(clock.run_until(finished, clock.now() + 1h));
  }
  void restart() {
    storage_.reset();
    process_.reset();
    process_ = std::make_unique<ProcessClock>(clock);
    storage_ = std::make_unique<MemoryStorage>(*process_, disk);
  }
  void cut_power(Survivors survivors) {
    storage_.reset();
    process_.reset();
    disk.cut_power(survivors);
    restart();
  }

  VirtualClock clock;
  MemoryDisk disk;

 private:
  std::unique_ptr<ProcessClock> process_;
  std::unique_ptr<MemoryStorage> storage_;
};

template <typename T>
Code code(const Result<T>& result) {
  REQUIRE_FALSE(result.has_value());
  return result.error().code;
}

}  // namespace

TEST_CASE("memory storage keeps the storage contract") {
  const auto seed = std::random_device()();
  INFO("seed " << seed);
  check_storage_contract([seed] { return std::make_unique<MemoryFixture>(DiskOptions{.seed = seed}); });
}

TEST_CASE("memory storage of parts keeps the storage contract") {
  const auto seed = std::random_device()();
  INFO("seed " << seed);
  check_storage_contract([seed] { return std::make_unique<MemoryFixture>(parts_options(seed)); });
}

TEST_CASE("a power cut takes what was not finished and keeps what was") {
  MemoryFixture store;
  REQUIRE(store.create_folder("data").has_value());
  REQUIRE(store.write_file("data/finished", test_bytes(100, 1)).has_value());
  REQUIRE(store.publish_once("RUN", test_bytes(5, 2)).has_value());
  const FileId open = store.create_file("data/open", 100).value();
  REQUIRE(store.write(open, 0, test_bytes(100, 3)).has_value());
  store.cut_power(Survivors::none);
  CHECK(store.disk.files() == std::vector<std::string>{"RUN", "data/finished"});
  CHECK(store.read("data/finished", 0, 100).value() == test_bytes(100, 1));
}

TEST_CASE("syncing a folder keeps a file's name but not its bytes") {
  MemoryFixture store;
  const FileId open = store.create_file("file", 100).value();
  REQUIRE(store.write(open, 0, test_bytes(100, 3)).has_value());
  REQUIRE(store.sync_folder("").has_value());
  store.cut_power(Survivors::none);
  CHECK(store.length("file").value() == 0);
}

TEST_CASE("what was removed comes back unless the folder was synced") {
  MemoryFixture store;
  REQUIRE(store.publish_once("x", test_bytes(5, 1)).has_value());
  REQUIRE(store.remove("x").has_value());
  store.cut_power(Survivors::none);
  CHECK(store.read_record("x", 5).value() == test_bytes(5, 1));
  REQUIRE(store.remove("x").has_value());
  REQUIRE(store.sync_folder("").has_value());
  store.cut_power(Survivors::none);
  CHECK(code(store.length("x")) == Code::not_found);
}

TEST_CASE("a record that is visible but not durable is lost to a power cut, and to none other") {
  MemoryFixture store;
  const Bytes record = test_bytes(5, 1);
  for (const bool power : {false, true}) {
    store.disk.fail_call(0, Code::unavailable, FaultMoment::visible);
    CHECK(code(store.publish_once("x", record)) == Code::unavailable);
    CHECK(store.read_record("x", 5).value() == record);
    if (power) store.cut_power(Survivors::none);
    store.restart();
    CHECK(store.publish_once("x", record).value() == (power ? Published::made : Published::equal));
    REQUIRE(store.remove("x").has_value());
    REQUIRE(store.sync_folder("").has_value());
  }
}

TEST_CASE("a lost answer is found again by publishing the same bytes") {
  MemoryFixture store;
  store.disk.fail_call(0, Code::unavailable, FaultMoment::after);
  CHECK(code(store.publish_once("x", test_bytes(5, 1))) == Code::unavailable);
  store.cut_power(Survivors::none);
  CHECK(store.publish_once("x", test_bytes(5, 1)).value() == Published::equal);
}

TEST_CASE("the k-th call fails, once, and the disk says that it did") {
  MemoryFixture store;
  store.disk.fail_call(2, Code::exhausted);
  CHECK(store.create_folder("a").has_value());
  CHECK(store.create_folder("b").has_value());
  CHECK(store.disk.faults_fired() == 0);
  CHECK(code(store.create_folder("c")) == Code::exhausted);
  CHECK(store.disk.faults_fired() == 1);
  CHECK(store.create_folder("c").has_value());
  CHECK(store.disk.calls() == 4);
}

TEST_CASE("a file with a failed write is never finished") {
  MemoryFixture store;
  const FileId file = store.create_file("file", 10).value();
  store.disk.fail_call(0, Code::unavailable, FaultMoment::after);
  CHECK(code(store.write(file, 0, test_bytes(10, 1))) == Code::unavailable);
  CHECK(code(store.finish(file)) == Code::unavailable);
}

TEST_CASE("a slow call takes its time and others pass it") {
  MemoryFixture store;
  store.disk.slow_call(0, 10s);
  bool slow = false;
  store.storage().create_folder("slow", [&slow](const auto&) { slow = true; });
  CHECK(store.create_folder("quick").has_value());
  CHECK_FALSE(slow);
  store.clock.run_for(20s);
  CHECK(slow);
}

TEST_CASE("completions come out of order by seed, and in the same order for the same seed") {
  const auto order = [](std::uint64_t seed) {
    MemoryFixture store(DiskOptions{.seed = seed});
    std::vector<int> completed;
    for (int i = 0; i < 20; ++i) {
      store.storage().list("", [&completed, i](const auto&) { completed.push_back(i); });
    }
    store.clock.run_for(1s);
    return completed;
  };
  REQUIRE(order(1).size() == 20);
  CHECK_FALSE(std::is_sorted(order(1).begin(), order(1).end()));
  CHECK(order(1) == order(1));
  CHECK(order(1) != order(2));
}

TEST_CASE("a process that ends hears nothing more and does nothing more") {
  MemoryFixture store;
  bool completed = false;
  store.storage().create_folder("data", [&completed](const auto&) { completed = true; });
  store.restart();
  store.clock.run_for(1s);
  CHECK_FALSE(completed);
  CHECK(store.list("").value().empty());
}

TEST_CASE("a file of parts appears when it is finished") {
  MemoryFixture store(parts_options(1));
  const FileId file = store.create_file("file", 10).value();
  REQUIRE(store.write(file, 0, test_bytes(10, 1)).has_value());
  CHECK(code(store.length("file")) == Code::not_found);
  // Somebody else takes the name first.
  REQUIRE(store.publish_once("file", test_bytes(5, 2)).has_value());
  CHECK(code(store.finish(file)) == Code::invalid);
  CHECK(store.read_record("file", 5).value() == test_bytes(5, 2));
}

TEST_CASE("with survivors a power cut leaves anything between the durable and the visible") {
  bool lost = false;
  bool kept = false;
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    MemoryFixture store(DiskOptions{.seed = seed});
    REQUIRE(store.publish_once("x", test_bytes(5, 1)).has_value());
    static_cast<void>(store.create_file("file", 100).value());
    store.cut_power(Survivors::some);
    CHECK(store.read_record("x", 5).value() == test_bytes(5, 1));
    (store.length("file").has_value() ? kept : lost) = true;
  }
  CHECK(lost);
  CHECK(kept);
}
