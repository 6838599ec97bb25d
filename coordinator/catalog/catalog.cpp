#include "catalog.h"

#include <algorithm>
#include <utility>

#include "schema/codec.h"
#include "schema/names.h"

namespace vckpt {
namespace {

constexpr std::size_t reads_in_flight_max = 64;
constexpr std::uint64_t plan_bytes_max = std::uint64_t{1} << 30;
constexpr std::uint64_t segment_bytes_max = std::uint64_t{256} << 20;

// Reads records one after another with a bounded number in flight; `take(index, bytes)` gets each, `done` follows the
// last. Keeps itself alive until then.
class RecordReader : public std::enable_shared_from_this<RecordReader> {
 public:
  struct Record {
    std::string name;
    std::uint64_t bytes_max = 0;
  };
  using Take = std::function<void(std::size_t, Result<Bytes>)>;

  RecordReader(Storage& storage, std::vector<Record> records, Take take, std::function<void()> done)
      : storage_(storage), records_(std::move(records)), take_(std::move(take)), done_(std::move(done)) {}

  void run() {
    if (records_.empty()) return done_();
    while (next_ < records_.size() && in_flight_ < reads_in_flight_max) {
      const auto index = next_++;
      ++in_flight_;
      storage_.read_record(records_[index].name, records_[index].bytes_max,
                           [self = shared_from_this(), index](Result<Bytes> bytes) {
                             self->take_(index, std::move(bytes));
                             --self->in_flight_;
                             if (++self->taken_ == self->records_.size()) return self->done_();
                             self->run();
                           });
    }
  }

 private:
  Storage& storage_;
  std::vector<Record> records_;
  Take take_;
  std::function<void()> done_;
  std::size_t next_ = 0;
  std::size_t taken_ = 0;
  std::size_t in_flight_ = 0;
};

// One reading of the catalog. data/ is listed before decisions/: what is decided in between is not undecided.
struct CatalogReading : std::enable_shared_from_this<CatalogReading> {
  CatalogReading(Storage& where, std::function<void(Result<Catalog>)> then) : storage(where), done(std::move(then)) {}

  void begin() {
    storage.list(std::string(names::data), [self = shared_from_this()](auto entries) {
      if (!entries) return self->done(entries.error());
      for (const auto& entry : *entries) {
        if (const auto id = parse_checkpoint_id(entry.name); id && entry.folder) self->folders.push_back(*id);
      }
      self->list_decisions();
    });
  }

  void list_decisions() {
    storage.list(std::string(names::decisions), [self = shared_from_this()](auto entries) {
      if (!entries) return self->done(entries.error());
      std::vector<RecordReader::Record> records;
      for (const auto& entry : *entries) {
        const auto id = parse_checkpoint_id(entry.name);
        if (!id) continue;
        self->ids.push_back(*id);
        records.push_back({names::decision(*id), decision_bytes_max});
      }
      auto take = [self](std::size_t index, Result<Bytes> bytes) { self->take(self->ids[index], std::move(bytes)); };
      std::make_shared<RecordReader>(self->storage, std::move(records), take, [self] { self->sync(); })->run();
    });
  }

  // What was read is acted upon: visible is not durable.
  void sync() {
    storage.sync_folder(std::string(names::decisions), [self = shared_from_this()](auto synced) {
      if (!synced && synced.error().code != Code::not_found) return self->done(synced.error());
      self->finish();
    });
  }

  void take(const CheckpointId& id, Result<Bytes> bytes) {
    if (!bytes) {
      // A retired record may go while we read.
      if (bytes.error().code == Code::not_found) return;
      if (bytes.error().code == Code::unavailable) return failed.push_back(bytes.error());
      return catalog.unreadable.push_back({id, bytes.error()});
    }
    auto decision = decode_decision(*bytes);
    if (!decision) {
      catalog.unreadable.push_back({id, decision.error().with_context(names::decision(id))});
    } else if (decision->id != id) {
      catalog.unreadable.push_back(
          {id, corrupt(names::decision(id) + ": it is the decision of " + decision->id.name())});
    } else {
      catalog.decisions.push_back(*std::move(decision));
    }
  }

  void finish() {
    if (!failed.empty()) return done(failed.front());
    auto by_id = [](const auto& a, const auto& b) { return a.id < b.id; };
    std::sort(catalog.decisions.begin(), catalog.decisions.end(), by_id);
    std::sort(catalog.unreadable.begin(), catalog.unreadable.end(), by_id);
    std::sort(ids.begin(), ids.end());
    std::sort(folders.begin(), folders.end());
    for (const auto& id : folders) {
      if (!std::binary_search(ids.begin(), ids.end(), id)) {
        catalog.undecided.push_back(id);
      } else if (const auto* decision = catalog.find(id); decision && decision->verdict == Verdict::abort) {
        catalog.leftovers.push_back(id);
      }
    }
    done(std::move(catalog));
  }

  Storage& storage;
  std::function<void(Result<Catalog>)> done;
  std::vector<CheckpointId> folders;
  std::vector<CheckpointId> ids;
  std::vector<Error> failed;
  Catalog catalog;
};

// One reading of a checkpoint's plan and manifest segments: record 0 is the plan.
struct CheckpointReading : std::enable_shared_from_this<CheckpointReading> {
  CheckpointReading(Storage& where, Decision of, std::function<void(Result<CheckpointMetadata>)> then)
      : storage(where), done(std::move(then)), segments(of.segments.size()) {
    metadata.decision = std::move(of);
  }

  void begin() {
    const auto& decision = metadata.decision;
    std::vector<RecordReader::Record> records{{names::plan(decision.plan), plan_bytes_max}};
    for (std::uint32_t index = 0; index < decision.segments.size(); ++index) {
      records.push_back({names::segment(decision.id, decision.decided_by, decision.nonce, index), segment_bytes_max});
    }
    for (const auto& record : records) record_names.push_back(record.name);
    auto self = shared_from_this();
    auto take = [self](std::size_t index, Result<Bytes> bytes) { self->take(index, std::move(bytes)); };
    std::make_shared<RecordReader>(storage, std::move(records), take, [self] { self->finish(); })->run();
  }

  void take(std::size_t index, Result<Bytes> bytes) {
    if (error) return;
    auto taken = bytes ? check(index, *bytes) : Result<void>(gone_is_corrupt(bytes.error()));
    if (!taken) error = taken.error().with_context(record_names[index]);
  }

  // What a durable COMMIT names must be there.
  static Error gone_is_corrupt(Error error) {
    if (error.code == Code::not_found) error.code = Code::corrupt;
    return error;
  }

  Result<void> check(std::size_t index, const Bytes& bytes) {
    const auto& decision = metadata.decision;
    if (index == 0) {
      if (xxh3_128(bytes) != decision.plan) return corrupt("it does not have the digest that is its name");
      VCKPT_TRY(auto plan, decode_plan(bytes));
      metadata.plan = std::make_shared<const SavePlan>(std::move(plan));
      return {};
    }
    const auto& reference = decision.segments[index - 1];
    if (bytes.size() != reference.length_bytes) {
      return corrupt("it has " + std::to_string(bytes.size()) + " bytes, the decision says " +
                     std::to_string(reference.length_bytes));
    }
    if (xxh3_128(bytes) != reference.digest) return corrupt("it does not have the digest that the decision names");
    VCKPT_TRY(segments[index - 1], decode_segment(bytes));
    return {};
  }

  void finish() {
    const auto& decision = metadata.decision;
    const auto name = decision.id.name();
    if (error) return done(error->with_context(name));
    auto manifest = join_manifest(std::move(segments));
    if (!manifest) return done(manifest.error().with_context(name));
    if (manifest->id != decision.id || manifest->plan != decision.plan || manifest->world_size != decision.world_size) {
      return done(corrupt(name + ": manifest and decision do not belong together"));
    }
    if (!metadata.plan->sections.empty() && metadata.plan->world_size() != decision.world_size) {
      return done(corrupt(name + ": plan and decision do not belong together"));
    }
    metadata.manifest = std::make_shared<const Manifest>(*std::move(manifest));
    done(std::move(metadata));
  }

  Storage& storage;
  std::function<void(Result<CheckpointMetadata>)> done;
  std::vector<std::string> record_names;
  std::vector<ManifestSegment> segments;
  CheckpointMetadata metadata;
  std::optional<Error> error;
};

}  // namespace

void read_catalog(Storage& storage, std::function<void(Result<Catalog>)> done) {
  std::make_shared<CatalogReading>(storage, std::move(done))->begin();
}

void read_checkpoint(Storage& storage, const Decision& decision, std::function<void(Result<CheckpointMetadata>)> done) {
  std::make_shared<CheckpointReading>(storage, decision, std::move(done))->begin();
}

}  // namespace vckpt
