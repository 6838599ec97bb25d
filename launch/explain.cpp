#include "launch/explain.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <set>
#include <vector>

#include "launch/command.h"
#include "launch/root.h"
#include "schema/names.h"

namespace vckpt::launch {

namespace {

enum class State { committed, aborted, undecided, unreadable };

struct Explained {
  CheckpointId id;
  State state = State::undecided;
  const Decision* decision = nullptr;  // committed, aborted
  const Error* error = nullptr;        // unreadable
};

std::string_view to_string(State state) {
  switch (state) {
    case State::committed: return "committed";
    case State::aborted: return "aborted";
    case State::undecided: return "undecided";
    case State::unreadable: return "unreadable";
  }
  return "";
}

// All attempts that left a record or a folder, by id.
std::vector<Explained> attempts(const Catalog& catalog) {
  std::vector<Explained> all;
  for (const auto& decision : catalog.decisions) {
    all.push_back(
        {decision.id, decision.verdict == Verdict::commit ? State::committed : State::aborted, &decision, nullptr});
  }
  for (const auto& id : catalog.undecided) all.push_back({id, State::undecided, nullptr, nullptr});
  for (const auto& record : catalog.unreadable) all.push_back({record.id, State::unreadable, nullptr, &record.error});
  std::sort(all.begin(), all.end(), [](const Explained& a, const Explained& b) { return a.id < b.id; });
  return all;
}

Result<std::vector<Explained>> choose(const Catalog& catalog, const Selector& selector, const std::string& root) {
  auto chosen = attempts(catalog);
  std::string wanted = root + ": ";
  if (const auto* step = std::get_if<Step>(&selector)) {
    std::erase_if(chosen, [&](const Explained& one) { return one.id.step != *step; });
    wanted += "no attempt at step " + std::to_string(step->value);
  } else if (const auto* id = std::get_if<CheckpointId>(&selector)) {
    std::erase_if(chosen, [&](const Explained& one) { return one.id != *id; });
    wanted += "no attempt " + id->name();
  } else {
    if (!chosen.empty()) chosen.erase(chosen.begin(), chosen.end() - 1);
    wanted += "no attempt";
  }
  if (!chosen.empty()) return chosen;
  return not_found(wanted + " left a record; one that fails before its files are made is told to its callers only");
}

std::string age_text(const Decision& decision) {
  const auto now =
      std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch());
  const auto age = std::max<std::int64_t>(0, now.count() - decision.decided_unix_s);
  return age < 10 ? std::to_string(age) + " s" : seconds_text(static_cast<double>(age));
}

std::string line_text(const Catalog& catalog, const Decision& decision) {
  if (catalog.newest() == &decision) return "the newest of the current line";
  if (!catalog.abandoned(decision)) return "on the current line";
  return "abandoned: training went back behind it";
}

void print_text(const Catalog& catalog, const Explained& one, std::ostream& out) {
  out << one.id.name() << ": ";
  if (one.state == State::unreadable) {
    out << "its decision cannot be read: " << one.error->message << '\n';
  } else if (one.state == State::undecided) {
    out << "begun by epoch " << one.id.epoch.value
        << " and not decided: it is in flight, or its coordinator has ended and the next one decides\n";
  } else if (one.state == State::committed) {
    const auto& decision = *one.decision;
    out << "committed by epoch " << decision.decided_by.value << ' ' << age_text(decision) << " ago, "
        << decision.world_size << " ranks\n";
    out << "  parent  " << (decision.parent ? decision.parent->name() : "none: it begins a line") << '\n';
    out << "  line    " << line_text(catalog, decision) << '\n';
    if (decision.keep_forever) out << "  kept    for ever\n";
    if (catalog.is_retired(one.id)) out << "  retired newer ones are kept instead\n";
  } else {
    const auto& decision = *one.decision;
    const auto who = blame(decision.reason);
    out << "aborted by epoch " << decision.decided_by.value << ' ' << age_text(decision) << " ago\n";
    if (who.rank) {
      out << "  rank    " << *who.rank << (who.host.empty() ? "" : " on " + who.host) << '\n';
    }
    if (!who.phase.empty()) out << "  phase   " << who.phase << '\n';
    if (!who.object.empty()) out << "  object  " << who.object << '\n';
    out << "  reason  " << (decision.reason.empty() ? "none was given" : decision.reason) << '\n';
  }
}

Json& text_or_null(Json& json, std::string_view key, const std::string& text) {
  json.key(key);
  return text.empty() ? json.null() : json.value(text);
}

void add_json(const Catalog& catalog, const Explained& one, Json& json) {
  json.object().member("id", one.id.name()).member("step", one.id.step.value).member("state", to_string(one.state));
  if (one.error != nullptr) json.member("error", one.error->message);
  if (one.decision != nullptr) {
    const auto& decision = *one.decision;
    json.member("decided_by", decision.decided_by.value).member("decided_unix_s", decision.decided_unix_s);
    json.member("ranks", decision.world_size);
  }
  if (one.state == State::committed) {
    text_or_null(json, "parent", one.decision->parent ? one.decision->parent->name() : "");
    json.member("newest", catalog.newest() == one.decision).member("abandoned", catalog.abandoned(*one.decision));
    json.member("retired", catalog.is_retired(one.id)).member("keep_forever", one.decision->keep_forever);
  }
  if (one.state == State::aborted) {
    const auto who = blame(one.decision->reason);
    text_or_null(json, "reason", one.decision->reason);
    text_or_null(json, "code", who.code).key("rank");
    who.rank ? json.value(*who.rank) : json.null();
    text_or_null(json, "host", who.host);
    text_or_null(json, "phase", who.phase);
    text_or_null(json, "object", who.object);
  }
  json.end();
}

// What stands between two words; empty when either is missing.
std::string_view between(std::string_view text, std::string_view begin, std::string_view end) {
  const auto at = text.find(begin);
  if (at == std::string_view::npos) return {};
  text.remove_prefix(at + begin.size());
  const auto stop = text.find(end);
  return stop == std::string_view::npos ? std::string_view{} : text.substr(0, stop);
}

// `file 'NAME'`, else the first path below a root, else what the phase is followed by.
std::string object_of(std::string_view text, std::string_view after_phase) {
  if (const auto file = between(text, "file '", "'"); !file.empty()) return std::string(file);
  for (const auto folder : {"/data/", "/plans/", "/decisions/"}) {
    const auto at = text.find(folder);
    if (at == std::string_view::npos) continue;
    const auto begin = text.rfind(' ', at) + 1;  // npos + 1: the text's begin
    return std::string(text.substr(begin, text.find(": ", at) - begin));
  }
  const auto end = after_phase.find(": ");
  return end == std::string_view::npos ? "" : std::string(after_phase.substr(0, end));
}

}  // namespace

Blame blame(std::string_view reason) {
  Blame blame;
  const auto is_letter = [](char c) { return c >= 'a' && c <= 'z'; };
  const auto code = reason.substr(0, reason.find(": "));
  if (code.size() < reason.size() && !code.empty()) {
    if (std::all_of(code.begin(), code.end(), [&](char c) { return is_letter(c) || c == '_'; })) blame.code = code;
  }
  // `rank 2 (node-1) ...`, as the coordinator names a member
  for (auto at = reason.find("rank "); at != std::string_view::npos; at = reason.find("rank ", at + 1)) {
    if (at > 0 && is_letter(reason[at - 1])) continue;
    const auto rest = reason.substr(at + 5);
    std::uint32_t rank = 0;
    const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), rank);
    if (error != std::errc()) continue;
    blame.rank = rank;
    const auto after = rest.substr(static_cast<std::size_t>(end - rest.data()));
    if (after.starts_with(" (")) blame.host = after.substr(2, after.find(')') - 2);
    break;
  }
  const auto phase = reason.find("in phase ");
  std::string_view after_phase;
  if (phase != std::string_view::npos) {
    const auto rest = reason.substr(phase + 9);
    const auto end = std::find_if_not(rest.begin(), rest.end(), is_letter);
    blame.phase = std::string(rest.begin(), end);
    after_phase = rest.substr(blame.phase.size());
    after_phase = after_phase.starts_with(": ") ? after_phase.substr(2) : std::string_view{};
  }
  blame.object = object_of(reason, after_phase);
  return blame;
}

Result<int> explain(const ExplainArguments& arguments, std::ostream& out) {
  VCKPT_TRY(const auto name, parse_checkpoint_name(arguments.attempt));
  VCKPT_TRY(const auto root, Root::open(name.root));
  VCKPT_TRY(const auto catalog, root->catalog());
  VCKPT_TRY(const auto chosen, choose(catalog, name.selector, name.root));
  if (!arguments.json) {
    for (const auto& one : chosen) print_text(catalog, one, out);
    return exit_ok;
  }
  Json json;
  json.object().member("root", root->path()).key("attempts").array();
  for (const auto& one : chosen) add_json(catalog, one, json);
  json.end().end();
  out << json.text() << '\n';
  return exit_ok;
}

}  // namespace vckpt::launch
