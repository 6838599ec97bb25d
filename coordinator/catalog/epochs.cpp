#include "epochs.h"

#include <memory>
#include <utility>

#include "schema/codec.h"
#include "schema/names.h"

namespace vckpt {
namespace {

constexpr std::uint64_t identity_bytes_max = 64 * 1024;
constexpr int claim_tries_max = 64;  // others that claim at the same moment
constexpr int publish_tries_max = 3;

std::string made_name(Nonce nonce) {
  static constexpr char digits[] = "0123456789abcdef";
  std::string name = "run-";
  for (int shift = 60; shift >= 0; shift -= 4) name += digits[(nonce.value >> shift) & 15];
  return name;
}

// Publishes, and after an error publishes the same bytes again: only then is it known whether they stand.
void publish_surely(Storage& storage, const std::string& name, const Bytes& bytes, int tries,
                    std::function<void(Result<Published>)> done) {
  storage.publish_once(name, bytes,
                       [&storage, name, bytes, tries, done = std::move(done)](Result<Published> published) {
                         const bool again = !published && tries > 1 && published.error().code != Code::invalid;
                         if (!again) return done(std::move(published));
                         publish_surely(storage, name, bytes, tries - 1, done);
                       });
}

struct RunOpening : std::enable_shared_from_this<RunOpening> {
  RunOpening(Storage& where, std::string wanted, Nonce fresh, std::function<void(Result<RunRecord>)> then)
      : storage(where), name(std::move(wanted)), nonce(fresh), done(std::move(then)) {}

  void read(bool make) {
    find_run(storage, [self = shared_from_this(), make](Result<std::optional<RunRecord>> record) {
      if (!record) return self->done(record.error());
      if (*record) return self->found(**record);
      if (make) return self->publish();
      self->done(unavailable(self->storage.root() + ": its RUN record came and went"));
    });
  }

  void found(const RunRecord& record) {
    if (!name.empty() && record.name != name) {
      return done(invalid(storage.root() + " belongs to run '" + record.name + "', not to '" + name + "'"));
    }
    done(record);
  }

  void publish() {
    const RunRecord record{name.empty() ? made_name(nonce) : name, nonce};
    publish_surely(storage, std::string(names::run), encode(record), publish_tries_max,
                   [self = shared_from_this(), record](Result<Published> published) {
                     if (!published) return self->done(published.error());
                     if (*published == Published::other) return self->read(false);
                     self->done(record);
                   });
  }

  Storage& storage;
  std::string name;
  Nonce nonce;
  std::function<void(Result<RunRecord>)> done;
};

void claim(Storage& storage, EpochRecord record, int tries, std::function<void(Result<EpochRecord>)> done) {
  highest_epoch(storage, [&storage, record = std::move(record), tries, done = std::move(done)](auto highest) mutable {
    if (!highest) return done(highest.error());
    if (highest->value == UINT64_MAX) return done(corrupt(storage.root() + ": no epoch number is left"));
    record.epoch = Epoch{highest->value + 1};
    auto bytes = encode(record);
    publish_surely(storage, names::epoch(record.epoch), bytes, publish_tries_max,
                   [&storage, record, tries, done = std::move(done)](Result<Published> published) {
                     if (!published) return done(published.error());
                     if (*published != Published::other) return done(record);
                     if (tries > 1) return claim(storage, record, tries - 1, done);
                     done(unavailable(storage.root() + ": too many others claim epochs at the same time"));
                   });
  });
}

}  // namespace

void find_run(Storage& storage, std::function<void(Result<std::optional<RunRecord>>)> done) {
  storage.read_record(std::string(names::run), identity_bytes_max,
                      [&storage, done = std::move(done)](Result<Bytes> bytes) {
                        if (!bytes && bytes.error().code == Code::not_found) return done(std::optional<RunRecord>());
                        if (!bytes) return done(bytes.error());
                        auto record = decode_run(*bytes);
                        if (!record)
                          return done(record.error().with_context(storage.root() + "/" + std::string(names::run)));
                        storage.sync_folder("", [record = *std::move(record), done](Result<void> synced) {
                          if (!synced) return done(synced.error());
                          done(std::optional<RunRecord>(record));
                        });
                      });
}

void create_folders(Storage& storage, const std::vector<std::string>& names, std::function<void(Result<void>)> done) {
  struct Creation {
    std::size_t missing;
    Result<void> outcome;
    std::function<void(Result<void>)> done;
  };
  auto creation = std::make_shared<Creation>(Creation{names.size(), {}, std::move(done)});
  for (const auto& name : names) {
    storage.create_folder(name, [creation](Result<void> created) {
      if (!created && creation->outcome) creation->outcome = created;
      if (--creation->missing == 0) creation->done(creation->outcome);
    });
  }
}

void prepare_root(Storage& storage, std::function<void(Result<void>)> done) {
  storage.create_folder("", [&storage, done = std::move(done)](Result<void> created) {
    if (!created) return done(created);
    storage.probe([&storage, done](Result<void> probed) {
      if (!probed) return done(probed);
      const std::vector<std::string> folders{std::string(names::epochs), std::string(names::plans),
                                             std::string(names::data), std::string(names::decisions)};
      create_folders(storage, folders, done);
    });
  });
}

void open_run(Storage& storage, const std::string& name, Nonce nonce, std::function<void(Result<RunRecord>)> done) {
  std::make_shared<RunOpening>(storage, name, nonce, std::move(done))->read(true);
}

void highest_epoch(Storage& storage, std::function<void(Result<Epoch>)> done) {
  storage.list(std::string(names::epochs), [done = std::move(done)](Result<std::vector<StorageEntry>> entries) {
    if (!entries) return done(entries.error());
    Epoch highest;
    for (const auto& entry : *entries) {
      if (const auto epoch = names::parse_epoch(entry.name); epoch && highest < *epoch) highest = *epoch;
    }
    done(highest);
  });
}

void newest_epoch(Storage& storage, std::function<void(Result<std::optional<EpochRecord>>)> done) {
  highest_epoch(storage, [&storage, done = std::move(done)](Result<Epoch> highest) {
    if (!highest) return done(highest.error());
    if (*highest == Epoch{}) return done(std::optional<EpochRecord>());
    const auto name = names::epoch(*highest);
    storage.read_record(name, identity_bytes_max, [name, done](Result<Bytes> bytes) {
      if (!bytes) return done(bytes.error());
      auto record = decode_epoch(*bytes);
      if (!record) return done(record.error().with_context(name));
      done(std::optional<EpochRecord>(*std::move(record)));
    });
  });
}

void claim_epoch(Storage& storage, EpochRecord record, std::function<void(Result<EpochRecord>)> done) {
  claim(storage, std::move(record), claim_tries_max, std::move(done));
}

}  // namespace vckpt
