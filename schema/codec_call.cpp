// What workers say: calls with their options, receipts, progress.
#include "schema/codec_control.h"

namespace vckpt::wire {
namespace {

constexpr Phase last_phase = Phase::scatter;

void write(ItemOffers::Builder builder, const std::vector<ItemOffer>& items) {
  std::string scopes;
  std::string digests;
  for (const auto& item : items) {
    scopes.push_back(static_cast<char>(item.scope));
    digests.append(reinterpret_cast<const char*>(item.digest.bytes.data()), item.digest.bytes.size());
  }
  write_names(builder.initSections(), items, [](const ItemOffer& item) -> std::string_view { return item.section; });
  write_names(builder.initNames(), items, [](const ItemOffer& item) -> std::string_view { return item.name; });
  builder.setScopes(blob(scopes));
  builder.setDigests(blob(digests));
}

std::vector<ItemOffer> read(ItemOffers::Reader reader) {
  auto sections = within("sections", [&] { return wire::read(reader.getSections()); });
  auto names = within("names", [&] { return wire::read(reader.getNames()); });
  const auto scopes = reader.getScopes();
  const auto digests = digests_of(reader.getDigests());
  require(sections.size() == names.size() && scopes.size() == names.size() && digests.size() == names.size(),
          "columns of unequal length");
  std::vector<ItemOffer> items;
  items.reserve(names.size());
  for (std::size_t i = 0; i < names.size(); ++i) {
    require(check_section_name(sections[i]));
    require(check_fqn(names[i]));
    const auto scope = enum_of(scopes[i], Scope::splittable, "scope of '" + names[i] + "'");
    items.push_back(ItemOffer{std::move(sections[i]), std::move(names[i]), scope, digests[i]});
  }
  return items;
}

void write(SaveOptions::Builder builder, const vckpt::SaveOptions& options) {
  builder.setOverBudget(static_cast<std::uint8_t>(options.over_budget));
  builder.setKeepForever(options.keep_forever);
  builder.setMeta(text(options.meta));
}

vckpt::SaveOptions read(SaveOptions::Reader reader) {
  return {enum_of(reader.getOverBudget(), OverBudget::fail, "over_budget"), text(reader.getMeta()),
          reader.getKeepForever()};
}

void write(Selector::Builder builder, const vckpt::Selector& selector) {
  if (std::holds_alternative<Newest>(selector)) builder.setNewest();
  if (const auto* step = std::get_if<Step>(&selector)) builder.setStep(step->value);
  if (const auto* id = std::get_if<vckpt::CheckpointId>(&selector)) write(builder.initId(), *id);
}

vckpt::Selector read(Selector::Reader reader) {
  switch (reader.which()) {
    case Selector::NEWEST: return newest;
    case Selector::STEP: return Step(reader.getStep());
    case Selector::ID: return wire::read(reader.getId());
    case Selector::UNSET: break;
  }
  malformed("no such kind");
}

void write(LoadOptions::Builder builder, const vckpt::LoadOptions& options) {
  builder.setMissing(static_cast<std::uint8_t>(options.missing));
  builder.setUnexpected(static_cast<std::uint8_t>(options.unexpected));
  builder.setPerRank(static_cast<std::uint8_t>(options.per_rank));
  builder.setCast(options.cast);
  write(builder.initOnly(), options.only);
  const auto& rename = options.rename;
  write_names(builder.initRenameWanted(), rename, [](const auto& pair) -> std::string_view { return pair.first; });
  write_names(builder.initRenameStored(), rename, [](const auto& pair) -> std::string_view { return pair.second; });
  std::string outsides;
  for (const auto& resize : options.resize) outsides.push_back(static_cast<char>(resize.outside));
  write_names(builder.initResizePatterns(), options.resize,
              [](const Resize& resize) -> std::string_view { return resize.pattern; });
  builder.setResizeOutsides(blob(outsides));
}

vckpt::LoadOptions read(LoadOptions::Reader reader) {
  vckpt::LoadOptions options;
  options.missing = enum_of(reader.getMissing(), Missing::keep, "missing");
  options.unexpected = enum_of(reader.getUnexpected(), Unexpected::ignore, "unexpected");
  options.per_rank = enum_of(reader.getPerRank(), PerRank::drop, "per_rank");
  options.cast = reader.getCast();
  options.only = within("only", [&] { return wire::read(reader.getOnly()); });
  auto wanted = within("rename", [&] { return wire::read(reader.getRenameWanted()); });
  auto stored = within("rename", [&] { return wire::read(reader.getRenameStored()); });
  require(wanted.size() == stored.size(), "rename: columns of unequal length");
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    options.rename.emplace_back(std::move(wanted[i]), std::move(stored[i]));
  }
  auto patterns = within("resize", [&] { return wire::read(reader.getResizePatterns()); });
  const auto outsides = reader.getResizeOutsides();
  require(patterns.size() == outsides.size(), "resize: columns of unequal length");
  for (std::size_t i = 0; i < patterns.size(); ++i) {
    options.resize.push_back(Resize{std::move(patterns[i]), enum_of(outsides[i], Outside::keep, "resize")});
  }
  return options;
}

}  // namespace

static void write(SectionOffer::Builder builder, const vckpt::SectionOffer& offer) {
  builder.setName(text(offer.name));
  builder.setBody(blob(offer.body));
  fill(builder.initCoordinates(list_size(offer.coordinates.size())), offer.coordinates);
}

static vckpt::SectionOffer read(SectionOffer::Reader reader) {
  return {section_of(reader.getName()), digest_of(reader.getBody()),
          numbers_of<std::uint32_t>(reader.getCoordinates())};
}

void write(Join::Builder builder, const vckpt::Join& join) {
  builder.setSessionName(text(join.session_name));
  builder.setWorldSize(join.world_size);
  builder.setHost(text(join.host));
  builder.setProcess(join.process);
  builder.setTransportAddress(text(join.transport_address));
  builder.setStagingBytes(join.staging_bytes);
}

vckpt::Join read(Join::Reader reader) {
  return {text(reader.getSessionName()),      reader.getWorldSize(),   text(reader.getHost()), reader.getProcess(),
          text(reader.getTransportAddress()), reader.getStagingBytes()};
}

static std::vector<vckpt::SectionOffer> read_offers(capnp::List<SectionOffer>::Reader list) {
  auto offers = read_each<vckpt::SectionOffer>(list, "sections");
  for (std::size_t i = 1; i < offers.size(); ++i) {
    require(offers[i - 1].name < offers[i].name, "sections: not sorted, or listed twice");
  }
  return offers;
}

void write(SaveCall::Builder builder, const vckpt::SaveCall& call) {
  builder.setOrdinal(call.ordinal.value);
  builder.setStep(call.step.value);
  write_each(builder.initSections(list_size(call.sections.size())), call.sections);
  write(builder.initItems(), call.items);
  write(builder.initOptions(), call.options);
}

vckpt::SaveCall read(SaveCall::Reader reader) {
  vckpt::SaveCall call;
  call.ordinal = Ordinal(reader.getOrdinal());
  call.step = Step(reader.getStep());
  call.sections = read_offers(reader.getSections());
  call.items = within("items", [&] { return read(reader.getItems()); });
  call.options = within("options", [&] { return read(reader.getOptions()); });
  return call;
}

void write(LoadCall::Builder builder, const vckpt::LoadCall& call) {
  builder.setOrdinal(call.ordinal.value);
  write(builder.initSelector(), call.selector);
  write_each(builder.initSections(list_size(call.sections.size())), call.sections);
  write(builder.initItems(), call.items);
  write(builder.initOptions(), call.options);
  builder.setStagingBytes(call.staging_bytes);
}

vckpt::LoadCall read(LoadCall::Reader reader) {
  vckpt::LoadCall call;
  call.ordinal = Ordinal(reader.getOrdinal());
  call.selector = within("selector", [&] { return read(reader.getSelector()); });
  call.sections = read_offers(reader.getSections());
  call.items = within("items", [&] { return read(reader.getItems()); });
  call.options = within("options", [&] { return read(reader.getOptions()); });
  call.staging_bytes = reader.getStagingBytes();
  return call;
}

void write(Bodies::Builder builder, const vckpt::Bodies& bodies) {
  write_each(builder.initBodies(list_size(bodies.bodies.size())), bodies.bodies);
}

vckpt::Bodies read(Bodies::Reader reader) { return {read_each<vckpt::LayoutBody>(reader.getBodies(), "bodies")}; }

void write(Progress::Builder builder, const vckpt::Progress& progress) {
  builder.setOrdinal(progress.ordinal.value);
  builder.setPhase(static_cast<std::uint8_t>(progress.phase));
  builder.setBytes(progress.bytes);
}

vckpt::Progress read(Progress::Reader reader) {
  return {Ordinal(reader.getOrdinal()), enum_of(reader.getPhase(), last_phase, "phase"), reader.getBytes()};
}

void write(Receipt::Builder builder, const vckpt::Receipt& receipt) {
  builder.setOrdinal(receipt.ordinal.value);
  builder.setPlan(blob(receipt.plan));
  write_each(builder.initFiles(list_size(receipt.files.size())), receipt.files);
  write_each(builder.initItems(list_size(receipt.items.size())), receipt.items);
  builder.setStagingPeakBytes(receipt.staging_peak_bytes);
}

vckpt::Receipt read(Receipt::Reader reader) {
  return {Ordinal(reader.getOrdinal()), digest_of(reader.getPlan()),
          read_each<vckpt::FileRecord>(reader.getFiles(), "files"), read_each<vckpt::Item>(reader.getItems(), "items"),
          reader.getStagingPeakBytes()};
}

void write(LoadReceipt::Builder builder, const vckpt::LoadReceipt& receipt) {
  builder.setOrdinal(receipt.ordinal.value);
  builder.setStorageBytesRead(receipt.storage_bytes_read);
  builder.setBytesNeeded(receipt.bytes_needed);
  builder.setBytesReceived(receipt.bytes_received);
  builder.setStagingPeakBytes(receipt.staging_peak_bytes);
}

vckpt::LoadReceipt read(LoadReceipt::Reader reader) {
  return {Ordinal(reader.getOrdinal()), reader.getStorageBytesRead(), reader.getBytesNeeded(),
          reader.getBytesReceived(), reader.getStagingPeakBytes()};
}

void write(Failed::Builder builder, const vckpt::Failed& failed) {
  builder.setOrdinal(failed.ordinal.value);
  builder.setPhase(static_cast<std::uint8_t>(failed.phase));
  write(builder.initError(), failed.error);
}

vckpt::Failed read(Failed::Reader reader) {
  return {Ordinal(reader.getOrdinal()), enum_of(reader.getPhase(), last_phase, "phase"), read(reader.getError())};
}

}  // namespace vckpt::wire
