// The catalog: lineage, selectors, and records over the memory store.
#include "coordinator/catalog/catalog.h"

#include "coordinator/catalog/epochs.h"
#include "schema/codec.h"
#include "schema/digest.h"
#include "schema/names.h"
#include "tests/support/catch.h"
#include "tests/support/memory_storage.h"
#include "tests/support/virtual_clock.h"

namespace vckpt {
namespace {

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

CheckpointId id_of(std::uint64_t epoch, std::uint64_t attempt, std::uint64_t step) {
  return {Epoch{epoch}, Attempt{attempt}, Step{step}};
}

Decision commit(const CheckpointId& id, std::optional<CheckpointId> parent = std::nullopt) {
  Decision decision;
  decision.id = id;
  decision.verdict = Verdict::commit;
  decision.decided_by = id.epoch;
  decision.nonce = Nonce{5};
  decision.parent = parent;
  decision.world_size = 1;
  return decision;
}

Decision abort_of(const CheckpointId& id) {
  Decision decision;
  decision.id = id;
  decision.decided_by = id.epoch;
  decision.reason = "rank 2 ran out of disk";
  return decision;
}

// save 1..10, load 5, save 6
Catalog rolled_back() {
  Catalog catalog;
  for (std::uint64_t step = 1; step <= 10; ++step) {
    auto decision = commit(id_of(1, step, step));
    if (step > 1) decision.parent = id_of(1, step - 1, step - 1);
    catalog.decisions.push_back(decision);
  }
  catalog.decisions.push_back(commit(id_of(2, 1, 6), id_of(1, 5, 5)));
  return catalog;
}

TEST_CASE("newest is the last commit by id, on its line, and the abandoned future is known", "[catalog]") {
  const auto catalog = rolled_back();
  CHECK(catalog.newest()->id == id_of(2, 1, 6));
  std::vector<std::uint64_t> steps;
  for (const auto* decision : catalog.current_line()) steps.push_back(decision->id.step.value);
  CHECK(steps == std::vector<std::uint64_t>{6, 5, 4, 3, 2, 1});
  CHECK(catalog.abandoned(*catalog.find(id_of(1, 10, 10))));
  CHECK_FALSE(catalog.abandoned(*catalog.find(id_of(1, 5, 5))));
  CHECK(catalog.find(id_of(1, 5, 6)) == nullptr);
}

TEST_CASE("a line ends at a parent that is gone, aborted or not older", "[catalog]") {
  Catalog catalog;
  const auto child = id_of(2, 2, 2);
  SECTION("gone") { catalog.decisions = {commit(child, id_of(1, 1, 1))}; }
  SECTION("aborted") { catalog.decisions = {abort_of(id_of(1, 1, 1)), commit(child, id_of(1, 1, 1))}; }
  SECTION("itself") { catalog.decisions = {commit(child, child)}; }
  CHECK(catalog.current_line().size() == 1);
}

TEST_CASE("selectors: newest, step on the current line first, id", "[catalog]") {
  auto catalog = rolled_back();
  CHECK((*resolve(catalog, newest, "R"))->id == id_of(2, 1, 6));
  CHECK((*resolve(catalog, Step{6}, "R"))->id == id_of(2, 1, 6));
  CHECK((*resolve(catalog, Step{5}, "R"))->id == id_of(1, 5, 5));
  CHECK((*resolve(catalog, Step{9}, "R"))->id == id_of(1, 9, 9));
  CHECK((*resolve(catalog, id_of(1, 6, 6), "R"))->id == id_of(1, 6, 6));
  catalog.decisions.push_back(abort_of(id_of(2, 2, 7)));
  catalog.undecided = {id_of(2, 3, 8)};
  CHECK((*resolve(catalog, Step{7}, "R"))->id == id_of(1, 7, 7));  // an abort is no checkpoint
  const auto no_step = resolve(catalog, Step{77}, "R");
  CHECK(no_step.error().code == Code::not_found);
  CHECK(contains(no_step.error().message, "R: no committed checkpoint has step 77"));
  const auto aborted_one = resolve(catalog, id_of(2, 2, 7), "R");
  CHECK(aborted_one.error().code == Code::not_found);
  CHECK(contains(aborted_one.error().message, "rank 2 ran out of disk"));
  const auto undecided = resolve(catalog, id_of(2, 3, 8), "R");
  CHECK(undecided.error().code == Code::not_found);
  CHECK(contains(undecided.error().message, "never decided"));
  CHECK(resolve(catalog, id_of(9, 9, 9), "R").error().code == Code::not_found);
  CHECK(resolve(Catalog{}, newest, "R").error().code == Code::not_found);
}

TEST_CASE("a retired commit is meant by nothing, and lines are followed through it", "[catalog]") {
  auto catalog = rolled_back();
  catalog.retired = {id_of(1, 3, 3), id_of(1, 6, 6), id_of(1, 9, 9)};
  CHECK((*resolve(catalog, newest, "R"))->id == id_of(2, 1, 6));
  CHECK((*resolve(catalog, Step{6}, "R"))->id == id_of(2, 1, 6));
  std::vector<std::uint64_t> steps;
  for (const auto* decision : catalog.current_line()) steps.push_back(decision->id.step.value);
  CHECK(steps == std::vector<std::uint64_t>{6, 5, 4, 2, 1});
  CHECK_FALSE(catalog.abandoned(*catalog.find(id_of(1, 3, 3))));
  CHECK(catalog.abandoned(*catalog.find(id_of(1, 9, 9))));
  for (const Selector& selector : {Selector(Step{3}), Selector(id_of(1, 3, 3)), Selector(Step{9})}) {
    const auto found = resolve(catalog, selector, "R");
    REQUIRE_FALSE(found);
    CHECK(found.error().code == Code::not_found);
    CHECK(contains(found.error().message, "was retired"));
  }
  catalog.retired.push_back(id_of(2, 1, 6));
  CHECK((*resolve(catalog, newest, "R"))->id == id_of(1, 10, 10));
}

TEST_CASE("an unreadable decision hides only what it may be", "[catalog]") {
  auto catalog = rolled_back();
  SECTION("an older one") {
    catalog.unreadable = {{id_of(1, 12, 12), corrupt("flipped")}};
    CHECK(resolve(catalog, newest, "R").has_value());
  }
  SECTION("one that may be the newest") {
    catalog.unreadable = {{id_of(2, 2, 12), corrupt("flipped")}};
    CHECK(resolve(catalog, newest, "R").error().code == Code::corrupt);
  }
  CHECK(resolve(catalog, Step{12}, "R").error().code == Code::corrupt);
  CHECK(resolve(catalog, catalog.unreadable[0].id, "R").error().code == Code::corrupt);
  CHECK(resolve(catalog, Step{9}, "R").has_value());
}

// A root in memory, with calls that are waited for.
struct Root {
  explicit Root(std::uint64_t seed = 1) : disk(DiskOptions{.seed = seed}), storage(clock, disk) {}

  template <typename T, typename Begin>
  Result<T> wait(Begin begin) {
    auto answer = std::make_shared<std::optional<Result<T>>>();
    begin([answer](Result<T> result) {
      CHECK_FALSE(answer->has_value());
      *answer = std::move(result);
    });
    clock.run_for(std::chrono::seconds(10));
    REQUIRE(answer->has_value());
    return **answer;
  }
  Result<void> prepare() {
    return wait<void>([&](auto done) { prepare_root(storage, done); });
  }
  Result<Catalog> read() {
    return wait<Catalog>([&](auto done) { read_catalog(storage, done); });
  }
  Result<CheckpointMetadata> read(const Decision& decision) {
    return wait<CheckpointMetadata>([&](auto done) { read_checkpoint(storage, decision, done); });
  }
  Result<RunRecord> open(const std::string& name, std::uint64_t nonce) {
    return wait<RunRecord>([&](auto done) { open_run(storage, name, Nonce{nonce}, done); });
  }
  Result<EpochRecord> claim(std::uint64_t nonce) {
    EpochRecord record;
    record.nonce = Nonce{nonce};
    record.host = "here";
    return wait<EpochRecord>([&](auto done) { claim_epoch(storage, record, done); });
  }
  void publish(const std::string& name, Bytes bytes) {
    REQUIRE(wait<Published>([&](auto done) { storage.publish_once(name, bytes, done); }).has_value());
  }
  void folder(const std::string& name) {
    REQUIRE(wait<void>([&](auto done) { storage.create_folder(name, done); }).has_value());
  }

  VirtualClock clock;
  MemoryDisk disk;
  MemoryStorage storage;
};

TEST_CASE("a catalog of nothing is empty", "[catalog]") {
  Root root;
  const auto catalog = root.read();
  REQUIRE(catalog);
  CHECK(catalog->decisions.empty());
  CHECK(catalog->undecided.empty());
}

TEST_CASE("a catalog finds decisions, undecided folders, leftovers and unreadable records", "[catalog]") {
  Root root;
  REQUIRE(root.prepare());
  for (std::uint64_t attempt = 1; attempt <= 100; ++attempt) {  // more than are read at once
    const auto id = id_of(1, attempt, attempt);
    root.publish(names::decision(id), encode(commit(id)));
    root.folder(names::checkpoint(id));
  }
  root.publish(names::decision(id_of(2, 1, 1)), encode(abort_of(id_of(2, 1, 1))));
  root.folder(names::checkpoint(id_of(2, 1, 1)));
  root.folder(names::checkpoint(id_of(2, 2, 2)));
  root.folder("data/stray");
  root.publish("decisions/stray", Bytes(3));
  root.publish(names::decision(id_of(2, 3, 3)), Bytes(16, std::byte{0x55}));
  root.publish(names::decision(id_of(2, 4, 4)), encode(commit(id_of(2, 5, 5))));
  const auto catalog = root.read();
  REQUIRE(catalog);
  REQUIRE(catalog->decisions.size() == 101);
  CHECK(catalog->decisions[99].id == id_of(1, 100, 100));
  CHECK(catalog->undecided == std::vector<CheckpointId>{id_of(2, 2, 2)});
  CHECK(catalog->leftovers == std::vector<CheckpointId>{id_of(2, 1, 1)});
  REQUIRE(catalog->unreadable.size() == 2);
  CHECK(catalog->unreadable[0].error.code == Code::corrupt);
  CHECK(contains(catalog->unreadable[0].error.message, names::decision(id_of(2, 3, 3))));
  CHECK(contains(catalog->unreadable[1].error.message, "e000002-a000005-s000005"));
}

struct Stored {
  Decision decision;
  std::string plan_name;
  std::string segment_name;
};

Stored store_checkpoint(Root& root) {
  REQUIRE(root.prepare());
  const auto id = id_of(3, 1, 600);
  SavePlan plan;
  SectionPlan section;
  section.section = "model";
  section.tensors = {{"w", DType::u8, {4}}};
  section.ranks = {{no_body, {}, {{0, Box{{0}, {4}}}}}};
  plan.sections = {section};
  const auto plan_bytes = encode(plan);
  Manifest manifest;
  manifest.id = id;
  manifest.plan = xxh3_128(plan_bytes);
  manifest.world_size = 1;
  FileRecord file;
  file.section = "model";
  file.header_bytes = 4096;
  file.data_bytes = 4;
  file.chunk_digests = {1};
  manifest.files = {file};
  const auto segments = split_manifest(manifest, 1 << 20);
  REQUIRE(segments.size() == 1);
  const auto segment_bytes = encode(segments[0]);
  auto decision = commit(id);
  decision.plan = manifest.plan;
  decision.segments = {{xxh3_128(segment_bytes), segment_bytes.size()}};
  root.publish(names::plan(manifest.plan), plan_bytes);
  root.folder(names::checkpoint(id));
  const auto segment_name = names::segment(id, decision.decided_by, decision.nonce, 0);
  root.publish(segment_name, segment_bytes);
  root.publish(names::decision(id), encode(decision));
  return {decision, names::plan(manifest.plan), segment_name};
}

TEST_CASE("a checkpoint's plan and manifest are read", "[catalog]") {
  Root root;
  const auto stored = store_checkpoint(root);
  const auto read = root.read(stored.decision);
  REQUIRE(read);
  CHECK(read->plan->sections.at(0).tensors.at(0).fqn == "w");
  CHECK(read->manifest->id == stored.decision.id);
  CHECK(read->manifest->files.at(0).data_bytes == 4);
}

TEST_CASE("a flipped bit anywhere in plan or manifest is corrupt and names the file", "[catalog]") {
  const bool plan = GENERATE(true, false);
  Root root;
  const auto stored = store_checkpoint(root);
  const auto name = plan ? stored.plan_name : stored.segment_name;
  const auto length = root.disk.contents(name)->size();
  for (std::uint64_t offset = 0; offset < length; ++offset) {
    REQUIRE(root.disk.flip_bit(name, offset, offset % 8));
    const auto read = root.read(stored.decision);
    REQUIRE_FALSE(read);
    REQUIRE(read.error().code == Code::corrupt);
    REQUIRE(contains(read.error().message, name));
    REQUIRE(root.disk.flip_bit(name, offset, offset % 8));
  }
  CHECK(root.read(stored.decision).has_value());
}

TEST_CASE("a plan or segment that is gone is corrupt", "[catalog]") {
  Root root;
  const auto stored = store_checkpoint(root);
  const auto name = GENERATE(true, false) ? stored.plan_name : stored.segment_name;
  REQUIRE(root.wait<void>([&](auto done) { root.storage.remove(name, done); }).has_value());
  const auto read = root.read(stored.decision);
  REQUIRE_FALSE(read);
  CHECK(read.error().code == Code::corrupt);
  CHECK(contains(read.error().message, name));
}

TEST_CASE("a run is made once, and another name is refused", "[catalog][epochs]") {
  Root root;
  REQUIRE(root.prepare());
  REQUIRE(root.prepare());
  const auto made = root.open("llama", 7);
  REQUIRE(made);
  CHECK(made->nonce == Nonce{7});
  CHECK(root.open("llama", 8).value() == *made);
  CHECK(root.open("", 8).value() == *made);
  const auto other = root.open("gpt", 9);
  REQUIRE_FALSE(other);
  CHECK(other.error().code == Code::invalid);
  CHECK(contains(other.error().message, "belongs to run 'llama', not to 'gpt'"));
}

TEST_CASE("a run without a name gets one", "[catalog][epochs]") {
  Root root;
  REQUIRE(root.prepare());
  CHECK(root.open("", 0xAB)->name == "run-00000000000000ab");
}

TEST_CASE("epochs rise, also when many claim at once, and lost answers do not skip any", "[catalog][epochs]") {
  Root root;
  REQUIRE(root.prepare());
  CHECK(*root.wait<Epoch>([&](auto done) { highest_epoch(root.storage, done); }) == Epoch{0});
  CHECK_FALSE(root.wait<std::optional<EpochRecord>>([&](auto done) { newest_epoch(root.storage, done); })->has_value());
  CHECK(root.claim(1)->epoch == Epoch{1});
  std::vector<std::uint64_t> claimed;
  for (std::uint64_t nonce = 10; nonce < 15; ++nonce) {
    EpochRecord record;
    record.nonce = Nonce{nonce};
    claim_epoch(root.storage, record, [&](Result<EpochRecord> epoch) { claimed.push_back(epoch.value().epoch.value); });
  }
  root.clock.run_for(std::chrono::seconds(10));
  std::sort(claimed.begin(), claimed.end());
  CHECK(claimed == std::vector<std::uint64_t>{2, 3, 4, 5, 6});
  root.disk.fail_call(1, Code::unavailable, FaultMoment::after);  // 0 lists, 1 publishes
  CHECK(root.claim(2)->epoch == Epoch{7});
  CHECK(root.disk.faults_fired() == 1);
  const auto newest_one = root.wait<std::optional<EpochRecord>>([&](auto done) { newest_epoch(root.storage, done); });
  CHECK((*newest_one)->nonce == Nonce{2});
}

}  // namespace
}  // namespace vckpt
