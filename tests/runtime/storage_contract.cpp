#include "tests/runtime/storage_contract.h"

#include <algorithm>
#include <random>

#include "tests/support/catch.h"

namespace vckpt {

void StorageFixture::check_open(bool answered) { VCKPT_ASSERT(!answered && "a completion ran inside its call"); }
void StorageFixture::check_once(bool answered) { VCKPT_ASSERT(!answered && "a call completed twice"); }

Result<void> StorageFixture::create_folder(const std::string& name) {
  return wait<void>([name](Storage& storage, auto done) { storage.create_folder(name, done); });
}
Result<FileId> StorageFixture::create_file(const std::string& name, std::uint64_t length_bytes) {
  return wait<FileId>([=](Storage& storage, auto done) { storage.create_file(name, length_bytes, done); });
}
Result<void> StorageFixture::write(FileId file, std::uint64_t offset_bytes, std::span<const std::byte> bytes) {
  return wait<void>([=](Storage& storage, auto done) { storage.write(file, offset_bytes, bytes, done); });
}
Result<void> StorageFixture::finish(FileId file) {
  return wait<void>([file](Storage& storage, auto done) { storage.finish(file, done); });
}
Result<void> StorageFixture::abandon(FileId file) {
  return wait<void>([file](Storage& storage, auto done) { storage.abandon(file, done); });
}
Result<Published> StorageFixture::publish_once(const std::string& name, const Bytes& bytes) {
  return wait<Published>([=](Storage& storage, auto done) { storage.publish_once(name, bytes, done); });
}
Result<std::uint64_t> StorageFixture::length(const std::string& name) {
  return wait<std::uint64_t>([name](Storage& storage, auto done) { storage.length(name, done); });
}
Result<Bytes> StorageFixture::read(const std::string& name, std::uint64_t offset_bytes, std::uint64_t length_bytes) {
  Bytes target(length_bytes);
  const std::span<std::byte> span = target;
  const auto result = wait<void>([=](Storage& storage, auto done) { storage.read(name, offset_bytes, span, done); });
  if (!result) return result.error();
  return target;
}
Result<Bytes> StorageFixture::read_record(const std::string& name, std::uint64_t bytes_max) {
  return wait<Bytes>([=](Storage& storage, auto done) { storage.read_record(name, bytes_max, done); });
}
Result<std::vector<StorageEntry>> StorageFixture::list(const std::string& folder) {
  return wait<std::vector<StorageEntry>>([folder](Storage& storage, auto done) { storage.list(folder, done); });
}
Result<void> StorageFixture::sync_folder(const std::string& folder) {
  return wait<void>([folder](Storage& storage, auto done) { storage.sync_folder(folder, done); });
}
Result<void> StorageFixture::remove(const std::string& name) {
  return wait<void>([name](Storage& storage, auto done) { storage.remove(name, done); });
}

Result<void> StorageFixture::write_file(const std::string& name, const Bytes& bytes) {
  VCKPT_TRY(const FileId file, create_file(name, bytes.size()));
  const std::uint64_t grain = std::max<std::uint64_t>(storage().limits().write_grain_bytes, 4096);
  for (std::uint64_t begin = 0; begin < bytes.size(); begin += grain) {
    const auto part = std::span(bytes).subspan(begin, std::min<std::uint64_t>(grain, bytes.size() - begin));
    VCKPT_TRY_VOID(write(file, begin, part));
  }
  return finish(file);
}

Bytes test_bytes(std::size_t count, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  Bytes bytes(count);
  for (auto& byte : bytes) byte = static_cast<std::byte>(random() >> 56);
  return bytes;
}

namespace {

template <typename T>
Code code(const Result<T>& result) {
  REQUIRE_FALSE(result.has_value());
  return result.error().code;
}

bool names(const Error& error, const std::string& noun) { return error.message.find(noun) != std::string::npos; }

void check_files(StorageFixture& store) {
  REQUIRE(store.create_folder("data/a").has_value());
  const std::uint64_t grain = store.storage().limits().write_grain_bytes;

  SECTION("a finished file reads back, whole and in parts") {
    const Bytes bytes = test_bytes(grain + 5000, 1);
    REQUIRE(store.write_file("data/a/file", bytes).has_value());
    CHECK(store.length("data/a/file").value() == bytes.size());
    CHECK(store.read("data/a/file", 0, bytes.size()).value() == bytes);
    CHECK(store.read("data/a/file", 4097, 100).value() == Bytes(bytes.begin() + 4097, bytes.begin() + 4197));
    CHECK(store.read("data/a/file", bytes.size(), 0).value().empty());
  }
  SECTION("writes may come in any order") {
    const Bytes bytes = test_bytes(2 * grain + 10, 2);
    const FileId file = store.create_file("data/a/file", bytes.size()).value();
    const std::span<const std::byte> all = bytes;
    REQUIRE(store.write(file, 2 * grain, all.subspan(2 * grain)).has_value());
    REQUIRE(store.write(file, 0, all.first(grain)).has_value());
    REQUIRE(store.write(file, grain, all.subspan(grain, grain)).has_value());
    REQUIRE(store.finish(file).has_value());
    CHECK(store.read("data/a/file", 0, bytes.size()).value() == bytes);
  }
  SECTION("an empty file is a file") {
    REQUIRE(store.write_file("data/a/empty", {}).has_value());
    CHECK(store.length("data/a/empty").value() == 0);
    CHECK(store.read_record("data/a/empty", 0).value().empty());
  }
  SECTION("a name is created once") {
    REQUIRE(store.write_file("data/a/file", test_bytes(10, 3)).has_value());
    const auto again = store.create_file("data/a/file", 10);
    CHECK(code(again) == Code::invalid);
    CHECK(names(again.error(), "data/a/file"));
    CHECK(store.read("data/a/file", 0, 10).value() == test_bytes(10, 3));
  }
  SECTION("a file needs its folder") { CHECK(code(store.create_file("data/b/file", 10)) == Code::not_found); }
  SECTION("a write outside the file is invalid") {
    const FileId file = store.create_file("data/a/file", 10).value();
    const Bytes bytes = test_bytes(11, 4);
    CHECK(code(store.write(file, 0, bytes)) == Code::invalid);
    CHECK(code(store.write(file, 11, {})) == Code::invalid);
    CHECK(code(store.write(file, UINT64_MAX, bytes)) == Code::invalid);
  }
  SECTION("a file with holes cannot be finished, and a failed finish is final") {
    const FileId file = store.create_file("data/a/file", grain + 10).value();
    REQUIRE(store.write(file, 0, test_bytes(grain, 5)).has_value());
    const auto finished = store.finish(file);
    CHECK(code(finished) == Code::invalid);
    CHECK(names(finished.error(), "data/a/file"));
    CHECK(code(store.finish(file)) == Code::invalid);
    CHECK(code(store.write(file, 0, {})) == Code::invalid);
  }
  SECTION("an abandoned file is gone and its name free") {
    const FileId file = store.create_file("data/a/file", 10).value();
    REQUIRE(store.abandon(file).has_value());
    CHECK(code(store.length("data/a/file")) == Code::not_found);
    CHECK(code(store.abandon(file)) == Code::invalid);
    CHECK(store.write_file("data/a/file", test_bytes(10, 6)).has_value());
  }
  SECTION("a read past the end is corrupt and names the file") {
    REQUIRE(store.write_file("data/a/file", test_bytes(100, 7)).has_value());
    const auto past = store.read("data/a/file", 50, 51);
    CHECK(code(past) == Code::corrupt);
    CHECK(names(past.error(), "data/a/file"));
    CHECK(code(store.read("data/a/file", UINT64_MAX, 1)) == Code::corrupt);
  }
  SECTION("what is not there is not found, and a folder is no file") {
    CHECK(code(store.read("data/a/none", 0, 1)) == Code::not_found);
    CHECK(code(store.length("data/none/file")) == Code::not_found);
    CHECK(code(store.read_record("data/a/none", 10)) == Code::not_found);
    CHECK(code(store.length("data/a")) == Code::invalid);
    CHECK(code(store.read_record("data/a", 10)) == Code::invalid);
  }
}

void check_records(StorageFixture& store) {
  REQUIRE(store.create_folder("decisions").has_value());
  const Bytes ours = test_bytes(3000, 8);

  SECTION("the first to publish makes the record, the same bytes are equal, others are told") {
    CHECK(store.publish_once("decisions/x", ours).value() == Published::made);
    CHECK(store.publish_once("decisions/x", ours).value() == Published::equal);
    Bytes other = ours;
    other.back() ^= std::byte{1};
    CHECK(store.publish_once("decisions/x", other).value() == Published::other);
    CHECK(store.publish_once("decisions/x", {}).value() == Published::other);
    CHECK(store.read_record("decisions/x", ours.size()).value() == ours);
  }
  SECTION("of many that publish at once exactly one makes the record") {
    constexpr int writers = 16;
    std::vector<Published> answers;
    store.run(
        [&] {
          for (int i = 0; i < writers; ++i) {
            store.storage().publish_once("decisions/x", test_bytes(100, 100 + static_cast<std::uint64_t>(i)),
                                         [&answers](Result<Published> result) { answers.push_back(result.value()); });
          }
        },
        [&] { return answers.size() == writers; });
    CHECK(std::count(answers.begin(), answers.end(), Published::made) == 1);
    CHECK(std::count(answers.begin(), answers.end(), Published::other) == writers - 1);
  }
  SECTION("a record needs its folder") { CHECK(code(store.publish_once("plans/x", ours)) == Code::not_found); }
  SECTION("a record is never published over a folder") {
    REQUIRE(store.create_folder("decisions/x").has_value());
    CHECK(code(store.publish_once("decisions/x", ours)) == Code::invalid);
  }
  SECTION("a record is read up to its bound and not a byte more") {
    REQUIRE(store.publish_once("decisions/x", ours).has_value());
    CHECK(store.read_record("decisions/x", ours.size()).value() == ours);
    const auto over = store.read_record("decisions/x", ours.size() - 1);
    CHECK(code(over) == Code::corrupt);
    CHECK(names(over.error(), "decisions/x"));
  }
  SECTION("an empty record is a record") {
    CHECK(store.publish_once("RUN", {}).value() == Published::made);
    CHECK(store.read_record("RUN", 0).value().empty());
  }
}

void check_folders(StorageFixture& store) {
  SECTION("a folder is made with its parents, and again") {
    REQUIRE(store.create_folder("data/a/model").has_value());
    REQUIRE(store.create_folder("data/a/model").has_value());
    REQUIRE(store.create_folder("data/a/optimizer").has_value());
    CHECK(store.list("data/a").value() == std::vector<StorageEntry>{{"model", true, 0}, {"optimizer", true, 0}});
    CHECK(store.list("").value() == std::vector<StorageEntry>{{"data", true, 0}});
    CHECK(store.sync_folder("data/a").has_value());
    CHECK(store.sync_folder("").has_value());
  }
  SECTION("a folder cannot take a file's name, nor lie in a file") {
    REQUIRE(store.create_folder("data").has_value());
    REQUIRE(store.write_file("data/file", test_bytes(10, 9)).has_value());
    CHECK(code(store.create_folder("data/file")) == Code::invalid);
    CHECK(code(store.create_folder("data/file/inner")) == Code::invalid);
  }
  SECTION("a listing is sorted and has lengths; no folder has no entries") {
    REQUIRE(store.create_folder("data").has_value());
    for (const std::string name : {"b", "a", "c10", "c9"}) {
      REQUIRE(store.publish_once("data/" + name, test_bytes(name.size(), 10)).has_value());
    }
    CHECK(store.list("data").value() ==
          std::vector<StorageEntry>{{"a", false, 1}, {"b", false, 1}, {"c10", false, 3}, {"c9", false, 2}});
    CHECK(store.list("none").value().empty());
    CHECK(store.list("none/inner").value().empty());
  }
  SECTION("removing takes a file, or a folder with all that is in it, and may be repeated") {
    REQUIRE(store.create_folder("data/a/model/0").has_value());
    REQUIRE(store.write_file("data/a/model/0/file", test_bytes(10, 11)).has_value());
    REQUIRE(store.write_file("data/a/manifest", test_bytes(10, 12)).has_value());
    CHECK(store.remove("data/a/manifest").has_value());
    CHECK(code(store.length("data/a/manifest")) == Code::not_found);
    CHECK(store.remove("data/a").has_value());
    CHECK(store.remove("data/a").has_value());
    CHECK(store.remove("none/file").has_value());
    CHECK(store.list("data").value().empty());
  }
}

void check_names(StorageFixture& store) {
  REQUIRE(store.create_folder("a").has_value());
  REQUIRE(store.publish_once("a/file", test_bytes(4, 13)).has_value());
  const std::string name = GENERATE(as<std::string>(), "..", "a/../a/file", "/etc/passwd", "a//file", "./a/file", "a/.",
                                    "a/file/", "a/..", "../outside");
  INFO(name);
  CHECK(code(store.create_folder(name)) == Code::invalid);
  CHECK(code(store.create_file(name, 1)) == Code::invalid);
  CHECK(code(store.publish_once(name, test_bytes(1, 1))) == Code::invalid);
  CHECK(code(store.length(name)) == Code::invalid);
  CHECK(code(store.read(name, 0, 1)) == Code::invalid);
  CHECK(code(store.read_record(name, 1)) == Code::invalid);
  CHECK(code(store.list(name)) == Code::invalid);
  CHECK(code(store.sync_folder(name)) == Code::invalid);
  CHECK(code(store.remove(name)) == Code::invalid);
}

void check_limits(StorageFixture& store) {
  REQUIRE(store.create_folder("data").has_value());
  CHECK(store.wait<void>([](Storage& storage, auto done) { storage.probe(done); }).has_value());
  CHECK(store.list("").value() == std::vector<StorageEntry>{{"data", true, 0}});
  CHECK(code(store.remove("")) == Code::invalid);

  const std::uint64_t grain = store.storage().limits().write_grain_bytes;
  REQUIRE(grain >= 1);
  if (grain == 1) return;
  const Bytes bytes = test_bytes(grain + 1, 14);
  const FileId file = store.create_file("data/file", 2 * grain).value();
  CHECK(code(store.write(file, 0, std::span(bytes).first(grain - 1))) == Code::invalid);
  CHECK(code(store.write(file, 1, std::span(bytes).first(grain))) == Code::invalid);
  CHECK(code(store.write(file, 0, std::span(bytes).first(grain + 1))) == Code::invalid);
  CHECK(store.abandon(file).has_value());
}

// Every call completes exactly once, however many are under way.
void check_many(StorageFixture& store) {
  REQUIRE(store.create_folder("data").has_value());
  constexpr int calls = 200;
  std::vector<int> completions(calls, 0);
  int open = calls;
  store.run(
      [&] {
        for (int i = 0; i < calls; ++i) {
          const auto name = "data/" + std::to_string(i % 50);
          const auto count = [&completions, &open, i](const auto&) {
            ++completions[static_cast<std::size_t>(i)];
            --open;
          };
          switch (i % 4) {
            case 0: store.storage().publish_once(name, test_bytes(10, 15), count); break;
            case 1: store.storage().list("data", count); break;
            case 2: store.storage().read_record(name, 100, count); break;
            default: store.storage().remove(name, count); break;
          }
        }
      },
      [&] { return open == 0; });
  CHECK(std::all_of(completions.begin(), completions.end(), [](int count) { return count == 1; }));
}

}  // namespace

void check_storage_contract(const std::function<std::unique_ptr<StorageFixture>()>& make) {
  const auto store = make();
  SECTION("files") { check_files(*store); }
  SECTION("records") { check_records(*store); }
  SECTION("folders") { check_folders(*store); }
  SECTION("names") { check_names(*store); }
  SECTION("limits") { check_limits(*store); }
  SECTION("many calls at once") { check_many(*store); }
}

}  // namespace vckpt
