#include "worker/call.h"

#include <algorithm>

namespace vckpt {
namespace {

double seconds(Duration duration) { return std::chrono::duration<double>(duration).count(); }

}  // namespace

const CallContent& Call::content() const {
  return is_save() ? std::get<SaveWish>(wish).content : std::get<LoadWish>(wish).content;
}

std::string Call::name() const {
  const std::string number = "call " + std::to_string(ordinal.value);
  if (!is_save()) return "load (" + number + ")";
  return "save of step " + std::to_string(std::get<SaveWish>(wish).step.value) + " (" + number + ")";
}

std::optional<Message> Call::request() const {
  switch (stage) {
    case Stage::asking:
      if (const auto* save = std::get_if<SaveWish>(&wish)) {
        return SaveCall{ordinal, save->step, save->content.sections, save->content.item_offers, save->options};
      } else {
        const auto& load = std::get<LoadWish>(wish);
        return LoadCall{ordinal,      load.selector,     load.content.sections, load.content.item_offers,
                        load.options, load.staging_bytes};
      }
    case Stage::reporting:
      if (const auto* saved = std::get_if<Receipt>(&receipt)) return *saved;
      return std::get<LoadReceipt>(receipt);
    case Stage::failing: return Failed{ordinal, phase, *failure};
    default: return std::nullopt;
  }
}

std::optional<LayoutBody> Call::body(const Digest& digest) const {
  const auto& offered = content();
  for (std::size_t i = 0; i < offered.bodies.size(); ++i) {
    if (offered.sections[i].body == digest) return *offered.bodies[i];
  }
  return std::nullopt;
}

Result<std::vector<Item>> Call::wanted_items() const {
  std::vector<Item> items;
  for (const auto& key : save_slice->items) {
    const auto& held = content().items;
    const auto found = std::find_if(held.begin(), held.end(), [&](const Item& item) {
      return item.section == key.section && item.name == key.name;
    });
    if (found == held.end()) {
      return invalid("section '" + key.section + "': item '" + key.name + "' was asked for but is not held");
    }
    items.push_back(*found);
  }
  return items;
}

void Call::complete(Report& report, TimePoint now) const {
  const TimePoint end_of_stall = released_at.value_or(now);
  report.stall_seconds = seconds(end_of_stall - called_at);
  if (run_started_at) {
    report.stall_copy_seconds = seconds(end_of_stall - *run_started_at);
    report.stall_peers_seconds = seconds(*run_started_at - called_at);
  }
  report.durable_seconds = seconds(now - called_at);
}

}  // namespace vckpt
