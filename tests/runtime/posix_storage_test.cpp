#include "runtime/posix_storage.h"

#include <sys/fsuid.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <fstream>
#include <future>
#include <mutex>
#include <thread>

#include "runtime/blocking_storage.h"
#include "tests/runtime/storage_contract.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_folder.h"

using namespace vckpt;
using namespace std::chrono_literals;

namespace {

class PosixFixture final : public StorageFixture {
 public:
  explicit PosixFixture(PosixOptions options = {}) : actor_("test-storage") {
    actor_.call([this, options] { storage_ = std::make_unique<PosixStorage>(actor_, folder.file("root"), options); });
  }
  ~PosixFixture() override {
    actor_.call([this] { storage_.reset(); });
  }

  Storage& storage() override { return *storage_; }

  void run(std::function<void()> begin, std::function<bool()> finished) override {
    std::promise<void> done;
    std::function<void()> look = [&] {
      if (finished()) return done.set_value();
      actor_.clock().call_at(actor_.clock().now() + 100us, look);
    };
    actor_.post([&] {
      begin();
      look();
    });
    // What is asked of the actor lives on this stack, so there is no way on without an answer.
    VCKPT_ASSERT(done.get_future().wait_for(60s) == std::future_status::ready);
  }

  TemporaryFolder folder;

 private:
  Actor actor_;
  std::unique_ptr<PosixStorage> storage_;
};

std::string root_of(const TemporaryFolder& folder) { return folder.file("root"); }

template <typename T>
Code code(const Result<T>& result) {
  REQUIRE_FALSE(result.has_value());
  INFO(result.error().message);
  return result.error().code;
}

std::size_t entries(const std::string& folder) {
  std::size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(folder)) ++count;
  return count;
}

// A small file system that fills up. Mounted in this process's own mount namespace.
class SmallDisk {
 public:
  explicit SmallDisk(std::string path) : path_(std::move(path)) {
    std::filesystem::create_directories(path_);
    mounted_ = ::unshare(CLONE_NEWNS) == 0 && ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
               ::mount("vckpt-test", path_.c_str(), "tmpfs", 0, "size=256k") == 0;
  }
  ~SmallDisk() {
    if (mounted_) ::umount2(path_.c_str(), MNT_DETACH);
  }
  bool mounted() const { return mounted_; }

 private:
  std::string path_;
  bool mounted_ = false;
};

}  // namespace

TEST_CASE("POSIX storage keeps the storage contract") {
  check_storage_contract([] { return std::make_unique<PosixFixture>(); });
}

TEST_CASE("POSIX storage keeps the storage contract where records are named by exclusive rename") {
  check_storage_contract([] { return std::make_unique<PosixFixture>(PosixOptions{.publishing = Publishing::rename}); });
}

TEST_CASE("a root that is missing is not found, until a folder is made in it") {
  TemporaryFolder folder;
  const auto root = folder.file("deep/root");
  BlockingStorage storage(root, 30s);
  for (const auto& error : {storage.probe().error(), storage.list("").error(), storage.read_record("RUN", 1).error(),
                            storage.publish_once("RUN", {}).error()}) {
    CHECK(error.code == Code::not_found);
    CHECK(error.message.find(root) != std::string::npos);
  }
  CHECK(storage.create_folder("").has_value());
  CHECK(storage.probe().has_value());
  CHECK(entries(root) == 0);
}

TEST_CASE("a root that is a file is invalid") {
  TemporaryFolder folder;
  std::ofstream(root_of(folder)) << "a file";
  BlockingStorage storage(root_of(folder), 30s);
  CHECK(code(storage.probe()) == Code::invalid);
  CHECK(code(storage.create_folder("data")) == Code::invalid);
  CHECK(code(storage.list("")) == Code::invalid);
}

TEST_CASE("the root itself may be reached by a link") {
  TemporaryFolder folder;
  std::filesystem::create_directory(folder.path() / "real");
  std::filesystem::create_directory_symlink("real", root_of(folder));
  BlockingStorage storage(root_of(folder), 30s);
  CHECK(storage.create_folder("data").has_value());
  CHECK(std::filesystem::is_directory(folder.path() / "real" / "data"));
}

TEST_CASE("links below the root are never followed") {
  TemporaryFolder folder;
  BlockingStorage storage(root_of(folder), 30s);
  REQUIRE(storage.create_folder("data").has_value());
  const auto root = folder.path() / "root";
  std::filesystem::create_directory(folder.path() / "outside");
  std::ofstream(folder.file("outside/secret")) << "secret";
  std::filesystem::create_directory_symlink("../../outside", root / "data" / "folder");
  std::filesystem::create_symlink("../../outside/secret", root / "data" / "file");
  std::filesystem::create_symlink("../../outside/new", root / "data" / "dangling");

  CHECK(code(storage.read_record("data/file", 100)) == Code::invalid);
  CHECK(code(storage.length("data/file")) == Code::invalid);
  CHECK(code(storage.read("data/folder/secret", 0, 1)) == Code::invalid);
  CHECK(code(storage.create_file("data/dangling", 1)) == Code::invalid);
  CHECK(code(storage.create_file("data/folder/new", 1)) == Code::invalid);
  CHECK(code(storage.create_folder("data/folder/new")) == Code::invalid);
  CHECK(code(storage.publish_once("data/folder/new", {})) == Code::invalid);
  CHECK(code(storage.publish_once("data/dangling", {})) == Code::invalid);
  CHECK(code(storage.list("data/folder")) == Code::invalid);
  CHECK(code(storage.sync_folder("data/folder")) == Code::invalid);
  CHECK(code(storage.remove("data/folder/secret")) == Code::invalid);
  CHECK(storage.list("data").value() ==
        std::vector<StorageEntry>{{"dangling", false, 0}, {"file", false, 0}, {"folder", false, 0}});
  // Removing takes the links, not what they point to.
  CHECK(storage.remove("data").has_value());
  CHECK(entries(folder.file("outside")) == 1);
}

TEST_CASE("a pipe in a file's place is refused, not waited for") {
  TemporaryFolder folder;
  BlockingStorage storage(root_of(folder), 30s);
  REQUIRE(storage.create_folder("decisions").has_value());
  REQUIRE(::mkfifo(folder.file("root/decisions/x").c_str(), 0600) == 0);
  CHECK(code(storage.read_record("decisions/x", 100)) == Code::invalid);
  CHECK(code(storage.read("decisions/x", 0, 1)) == Code::invalid);
  CHECK(code(storage.length("decisions/x")) == Code::invalid);
  CHECK(code(storage.publish_once("decisions/x", {})) == Code::invalid);
  CHECK(code(storage.create_file("decisions/x", 1)) == Code::invalid);
}

TEST_CASE("temporary names are neither listed nor reachable, and go with their folder") {
  TemporaryFolder folder;
  BlockingStorage storage(root_of(folder), 30s);
  REQUIRE(storage.create_folder("decisions").has_value());
  const std::string left_over = temporary_name();
  std::ofstream(folder.file("root/decisions/" + left_over)) << "half a rec";
  CHECK(storage.list("decisions").value().empty());
  CHECK(code(storage.read_record("decisions/" + left_over, 100)) == Code::invalid);
  CHECK(storage.publish_once("decisions/x", test_bytes(5, 1)).value() == Published::made);
  CHECK(entries(folder.file("root/decisions")) == 2);
  CHECK(storage.remove("decisions").has_value());
  CHECK(entries(root_of(folder)) == 0);
}

TEST_CASE("publishing leaves no temporary file, whatever its outcome") {
  const auto publishing = GENERATE(Publishing::link, Publishing::rename);
  TemporaryFolder folder;
  BlockingStorage storage(root_of(folder), 30s, PosixOptions{.publishing = publishing});
  REQUIRE(storage.create_folder("decisions").has_value());
  CHECK(storage.publish_once("decisions/x", test_bytes(5, 1)).value() == Published::made);
  CHECK(storage.publish_once("decisions/x", test_bytes(5, 1)).value() == Published::equal);
  CHECK(storage.publish_once("decisions/x", test_bytes(5, 2)).value() == Published::other);
  CHECK(storage.probe().has_value());
  CHECK(entries(folder.file("root/decisions")) == 1);
  CHECK(entries(root_of(folder)) == 1);
}

TEST_CASE("a store without permission says so") {
  TemporaryFolder folder;
  REQUIRE(::chmod(folder.path().c_str(), 0755) == 0);
  REQUIRE(::mkdir(root_of(folder).c_str(), 0555) == 0);
  Result<void> probed;
  Result<void> created;
  Result<Published> published = Published::made;
  // A thread of its own: the user for files is a thread's, and the storage's threads inherit it.
  std::thread([&] {
    constexpr uid_t nobody = 65534;
    if (::geteuid() == 0) ::setfsuid(nobody);
    BlockingStorage storage(root_of(folder), 30s);
    probed = storage.probe();
    created = storage.create_folder("data");
    published = storage.publish_once("RUN", {});
  }).join();
  CHECK(code(probed) == Code::invalid);
  CHECK(probed.error().message.find(root_of(folder) + ": create record: Permission denied") != std::string::npos);
  CHECK(code(created) == Code::invalid);
  CHECK(code(published) == Code::invalid);
}

TEST_CASE("a full disk is exhausted at the reservation, and nothing half made stays") {
  TemporaryFolder folder;
  Result<void> created;
  Result<FileId> reserved = FileId{0};
  Result<Published> published = Published::made;
  Result<void> probed;
  std::size_t left_over = 0;
  bool mounted = false;
  // A thread of its own: a mount namespace is a thread's, and the storage's threads inherit it.
  std::thread([&] {
    const SmallDisk disk(root_of(folder));
    mounted = disk.mounted();
    if (!mounted) return;
    BlockingStorage storage(root_of(folder), 30s);
    created = storage.create_folder("data");
    probed = storage.probe();
    reserved = storage.create_file("data/file", 1 << 20);
    published = storage.publish_once("data/record", Bytes(1 << 20));
    left_over = entries(root_of(folder) + "/data");
  }).join();
  if (!mounted) {
    WARN("skipped: mounting a small file system needs root");
    return;
  }
  CHECK(created.has_value());
  CHECK(probed.has_value());
  CHECK(code(reserved) == Code::exhausted);
  CHECK(reserved.error().message.find("data/file") != std::string::npos);
  CHECK(code(published) == Code::exhausted);
  CHECK(left_over == 0);
}

TEST_CASE("as many calls wait as the bound allows, and one more is exhausted") {
  constexpr int waiting = 4;
  Actor actor("test-storage");
  TemporaryFolder folder;
  REQUIRE(std::filesystem::create_directory(root_of(folder)));
  std::unique_ptr<PosixStorage> storage;
  actor.call([&] {
    storage = std::make_unique<PosixStorage>(actor, root_of(folder), PosixOptions{.threads = 0, .calls_max = waiting});
  });
  std::vector<Code> refused;
  std::mutex mutex;
  std::condition_variable given;
  actor.call([&] {
    for (int i = 0; i <= waiting; ++i) {
      storage->list("", [&](Result<std::vector<StorageEntry>> result) {
        const std::lock_guard lock(mutex);
        refused.push_back(result.error().code);
        given.notify_one();
      });
    }
  });
  std::unique_lock lock(mutex);
  REQUIRE(given.wait_for(lock, 30s, [&] { return !refused.empty(); }));
  lock.unlock();
  actor.call([&] { storage.reset(); });
  CHECK(refused == std::vector<Code>{Code::exhausted});
}

TEST_CASE("a storage that is destroyed drops its completions and lets go what they hold on its own thread") {
  Actor actor("test-storage");
  TemporaryFolder folder;
  std::atomic<int> completed = 0;
  std::atomic<int> released_elsewhere = 0;
  std::atomic<int> released = 0;
  struct Held {
    Actor& actor;
    std::atomic<int>& released;
    std::atomic<int>& elsewhere;
    ~Held() { ++(actor.on_this_thread() ? released : elsewhere); }
  };
  actor.call([&] {
    auto storage = std::make_unique<PosixStorage>(actor, root_of(folder));
    for (int i = 0; i < 100; ++i) {
      auto held = std::make_shared<Held>(actor, released, released_elsewhere);
      storage->create_folder("data/" + std::to_string(i), [&completed, held](Result<void>) { ++completed; });
    }
    storage.reset();
  });
  actor.call([] {});
  CHECK(completed == 0);
  CHECK(released == 100);
  CHECK(released_elsewhere == 0);
}

TEST_CASE("a blocking call ends at its deadline and names what it waited for") {
  TemporaryFolder folder;
  BlockingStorage storage(root_of(folder), 1ms);
  const auto result = storage.wait<void>("an answer that never comes", [](Storage&, auto) {});
  CHECK(code(result) == Code::unavailable);
  CHECK(result.error().message.find("an answer that never comes") != std::string::npos);
}
