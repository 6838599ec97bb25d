#include "launch/verify.h"

#include <chrono>
#include <vector>

#include "launch/command.h"
#include "launch/root.h"
#include "launch/stored_files.h"
#include "schema/codec.h"
#include "schema/names.h"

namespace vckpt::launch {

namespace {

struct Findings {
  std::string id;
  std::vector<Damage> damage;
  std::vector<std::string> records;  // damage of records, one line each
  std::uint64_t files = 0;
  std::uint64_t bytes = 0;
  std::uint64_t chunks = 0;
  double seconds = 0;

  bool sound() const { return damage.empty() && records.empty(); }
};

// Epoch records take no part in reading a checkpoint, but a coordinator that starts believes them.
Result<void> check_epochs(Root& root, Findings& findings) {
  constexpr std::uint64_t epoch_bytes_max = 64 * 1024;
  VCKPT_TRY(const auto entries, root.storage().list(std::string(names::epochs)));
  for (const auto& entry : entries) {
    const auto epoch = names::parse_epoch(entry.name);
    if (!epoch) continue;
    const auto bytes = root.storage().read_record(names::epoch(*epoch), epoch_bytes_max);
    if (!bytes) return bytes.error();
    const auto record = decode_epoch(*bytes);
    if (!record) {
      findings.records.push_back(names::epoch(*epoch) + ": " + record.error().message);
    } else if (record->epoch != *epoch) {
      findings.records.push_back(names::epoch(*epoch) + ": it is the record of " + names::epoch(record->epoch));
    }
  }
  return {};
}

Result<void> check_files(Root& root, const CheckpointMetadata& metadata, bool deep, Findings& findings) {
  VCKPT_TRY(const auto files, stored_files(metadata));
  for (const auto& file : files) findings.bytes += file.file_bytes();
  findings.files = files.size();
  Progress progress("verifying " + metadata.decision.id.name(), findings.bytes);
  const auto damaged = [&](Damage damage) { findings.damage.push_back(std::move(damage)); };
  for (const auto& file : files) {
    if (deep) {
      findings.chunks += file.record.chunk_digests.size();
      const auto take = [&](std::uint64_t, std::span<const std::byte> bytes) -> Result<void> {
        progress.add(bytes.size());
        return {};
      };
      VCKPT_TRY_VOID(read_checked(root.storage(), file, take, damaged));
    } else {
      VCKPT_TRY_VOID(check_length(root.storage(), file, damaged));
    }
  }
  return {};
}

void print_text(const Findings& findings, bool deep, std::ostream& out) {
  for (const auto& record : findings.records) out << "damaged: record " << record << '\n';
  for (const auto& damage : findings.damage) out << "damaged: " << to_string(damage) << '\n';
  const auto what = std::to_string(findings.files) + " files, " + bytes_text(findings.bytes);
  if (!findings.sound()) {
    out << findings.id << ": " << findings.records.size() + findings.damage.size() << " places damaged (" << what
        << ")\n";
  } else if (deep) {
    out << findings.id << ": every byte is as it was committed (" << what << ", " << findings.chunks << " chunks, "
        << seconds_text(findings.seconds) << ")\n";
  } else {
    out << findings.id << ": records are whole and files have their lengths (" << what
        << "); --deep reads every byte\n";
  }
}

void print_json(const Findings& findings, bool deep, std::ostream& out) {
  Json json;
  json.object().member("id", findings.id).member("ok", findings.sound()).member("deep", deep);
  json.member("files", findings.files).member("bytes", findings.bytes).member("chunks", findings.chunks);
  json.member("seconds", findings.seconds).key("damage").array();
  for (const auto& record : findings.records) json.object().member("record", record).end();
  for (const auto& damage : findings.damage) {
    json.object().member("section", damage.section).member("rank", damage.rank.value).member("file", damage.file);
    json.key("chunk");
    if (damage.chunk == header_chunk || damage.pieces.empty()) {
      json.null();
    } else {
      json.value(damage.chunk);
    }
    json.member("header", damage.chunk == header_chunk).member("pieces", damage.pieces);
    json.member("what", damage.what).end();
  }
  json.end().end();
  out << json.text() << '\n';
}

}  // namespace

Result<int> verify(const VerifyArguments& arguments, std::ostream& out) {
  const auto begun = std::chrono::steady_clock::now();
  VCKPT_TRY(const auto name, parse_checkpoint_name(arguments.checkpoint));
  Findings findings;
  findings.id = arguments.checkpoint;
  // A record that cannot be read is what was asked for: a finding, not an error.
  const auto look = [&]() -> Result<void> {
    VCKPT_TRY(const auto root, Root::open(name.root));
    VCKPT_TRY_VOID(check_epochs(*root, findings));
    VCKPT_TRY(const auto catalog, root->catalog());
    for (const auto& record : catalog.unreadable) findings.records.push_back(record.error.message);
    VCKPT_TRY(const auto* decision, resolve(catalog, name.selector, name.root));
    VCKPT_TRY(const auto metadata, root->metadata(*decision));
    findings.id = metadata.decision.id.name();
    return check_files(*root, metadata, arguments.deep, findings);
  };
  if (const auto looked = look(); !looked) {
    if (looked.error().code != Code::corrupt) return looked.error();
    findings.records.push_back(looked.error().message);
  }
  findings.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
  arguments.json ? print_json(findings, arguments.deep, out) : print_text(findings, arguments.deep, out);
  return findings.sound() ? exit_ok : exit_check_failed;
}

}  // namespace vckpt::launch
