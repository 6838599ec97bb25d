#include <algorithm>
#include <array>
#include <chrono>
#include <iomanip>
#include <set>
#include <vector>

#include "launch/command.h"
#include "launch/ls.h"
#include "launch/root.h"
#include "schema/names.h"

namespace vckpt::launch {

namespace {

// Bytes under data/, by what became of their attempt.
struct Usage {
  std::uint64_t live = 0;
  std::uint64_t retired = 0;
  std::uint64_t aborted = 0;
  std::uint64_t unknown = 0;
};

constexpr int folder_depth_max = 4;  // data/<id>/<section>/<rank / 1024>/file

Result<std::uint64_t> folder_bytes(BlockingStorage& storage, const std::string& folder, int depth) {
  VCKPT_TRY(const auto entries, storage.list(folder));
  std::uint64_t bytes = 0;
  for (const auto& entry : entries) {
    bytes += entry.length_bytes;
    if (!entry.folder || depth == folder_depth_max) continue;
    VCKPT_TRY(const auto inside, folder_bytes(storage, folder + "/" + entry.name, depth + 1));
    bytes += inside;
  }
  return bytes;
}

Result<Usage> usage(Root& root, const Catalog& catalog) {
  Usage usage;
  std::set<std::string> retired;
  VCKPT_TRY(const auto retirements, root.storage().list(std::string(names::retirements)));
  for (const auto& entry : retirements) retired.insert(entry.name);
  VCKPT_TRY(const auto folders, root.storage().list(std::string(names::data)));
  for (const auto& entry : folders) {
    const auto name = std::string(names::data) + "/" + entry.name;
    auto bytes = entry.length_bytes;
    if (entry.folder) {
      VCKPT_TRY(bytes, folder_bytes(root.storage(), name, 1));
    }
    const auto id = parse_checkpoint_id(entry.name);
    const auto* decision = id ? catalog.find(*id) : nullptr;
    if (decision == nullptr) {
      usage.unknown += bytes;
    } else if (decision->verdict == Verdict::abort) {
      usage.aborted += bytes;
    } else {
      (retired.contains(entry.name) ? usage.retired : usage.live) += bytes;
    }
  }
  return usage;
}

std::uint64_t checkpoint_bytes(const Decision& decision) {
  std::uint64_t bytes = 0;
  for (const auto& section : decision.sections) bytes += section.data_bytes;
  return bytes;
}

std::int64_t age_s(const Decision& decision) {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::max<std::int64_t>(
      0, std::chrono::duration_cast<std::chrono::seconds>(now).count() - decision.decided_unix_s);
}

std::string age_text(std::int64_t seconds) {
  return seconds < 10 ? std::to_string(seconds) + " s" : seconds_text(static_cast<double>(seconds));
}

void print_text(const Catalog& catalog, const Usage& usage, std::ostream& out) {
  std::vector<std::array<std::string, 7>> rows = {{"ID", "STEP", "SIZE", "AGE", "RANKS", "SECTIONS", "LINE"}};
  for (const auto& decision : catalog.decisions) {
    if (decision.verdict != Verdict::commit) continue;
    std::string sections;
    for (const auto& section : decision.sections) sections += (sections.empty() ? "" : ",") + section.name;
    const auto* line = catalog.abandoned(decision) ? "abandoned" : catalog.newest() == &decision ? "newest" : "";
    rows.push_back({decision.id.name(), std::to_string(decision.id.step.value), bytes_text(checkpoint_bytes(decision)),
                    age_text(age_s(decision)), std::to_string(decision.world_size), sections, line});
  }
  if (rows.size() == 1) out << "no committed checkpoint\n";
  std::array<std::size_t, 7> widths{};
  for (const auto& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  for (const auto& row : rows) {
    if (rows.size() == 1) break;
    std::string text;
    for (std::size_t i = 0; i < row.size(); ++i) {
      const auto padding = std::string(widths[i] - row[i].size(), ' ');
      const auto right = i >= 1 && i <= 4;
      text += (i == 0 ? "" : "  ") + (right ? padding + row[i] : row[i] + padding);
    }
    text.erase(text.find_last_not_of(' ') + 1);
    out << text << '\n';
  }
  for (const auto& record : catalog.unreadable)
    out << record.id.name() << "  unreadable: " << record.error.message << '\n';
  out << "bytes: live " << bytes_text(usage.live) << ", retired " << bytes_text(usage.retired) << ", aborted "
      << bytes_text(usage.aborted) << ", unknown " << bytes_text(usage.unknown) << '\n';
}

void print_json(Root& root, const Catalog& catalog, const Usage& usage, std::ostream& out) {
  Json json;
  json.object().member("root", root.path()).member("run", root.run().name).key("checkpoints").array();
  for (const auto& decision : catalog.decisions) {
    if (decision.verdict != Verdict::commit) continue;
    json.object().member("id", decision.id.name()).member("step", decision.id.step.value);
    json.member("epoch", decision.id.epoch.value).member("attempt", decision.id.attempt.value);
    json.member("bytes", checkpoint_bytes(decision)).member("committed_unix_s", decision.decided_unix_s);
    json.member("age_seconds", age_s(decision)).member("ranks", decision.world_size).key("parent");
    decision.parent ? json.value(decision.parent->name()) : json.null();
    json.member("newest", catalog.newest() == &decision).member("abandoned", catalog.abandoned(decision));
    json.key("sections").array();
    for (const auto& section : decision.sections) {
      json.object().member("name", section.name).member("tensors", section.tensors);
      json.member("bytes", section.data_bytes).end();
    }
    json.end().end();
  }
  json.end().key("unreadable").array();
  for (const auto& record : catalog.unreadable) {
    json.object().member("id", record.id.name()).member("error", record.error.message).end();
  }
  json.end().key("bytes").object().member("live", usage.live).member("retired", usage.retired);
  json.member("aborted", usage.aborted).member("unknown", usage.unknown).end().end();
  out << json.text() << '\n';
}

}  // namespace

Result<int> ls(const LsArguments& arguments, std::ostream& out) {
  VCKPT_TRY(const auto root, Root::open(arguments.root));
  VCKPT_TRY(const auto catalog, root->catalog());
  VCKPT_TRY(const auto bytes, usage(*root, catalog));
  arguments.json ? print_json(*root, catalog, bytes, out) : print_text(catalog, bytes, out);
  return exit_ok;
}

}  // namespace vckpt::launch
