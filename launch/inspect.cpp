#include <fnmatch.h>

#include <map>
#include <vector>

#include "launch/command.h"
#include "launch/ls.h"
#include "launch/root.h"
#include "launch/stored_files.h"

namespace vckpt::launch {

namespace {

bool matches(const std::string& pattern, const std::string& name) {
  return pattern.empty() || ::fnmatch(pattern.c_str(), name.c_str(), 0) == 0;
}

struct Extent {
  const StoredFile* file;
  const PlacedPiece* piece;

  std::uint64_t offset_bytes() const { return file->record.header_bytes + piece->offset_bytes; }  // in the file
};

struct InspectedSection {
  const SectionPlan* plan;
  std::map<std::uint32_t, std::vector<Extent>> extents;  // by tensor; those that match
  std::vector<const StoredItem*> items;
};

std::vector<InspectedSection> collect(const CheckpointMetadata& metadata, const std::vector<StoredFile>& files,
                                      const std::string& pattern) {
  std::vector<InspectedSection> sections;
  for (const auto& plan : metadata.plan->sections) {
    InspectedSection section{&plan, {}, {}};
    for (std::uint32_t tensor = 0; tensor < plan.tensors.size(); ++tensor) {
      if (matches(pattern, plan.tensors[tensor].fqn)) section.extents[tensor];
    }
    for (const auto& file : files) {
      if (file.section != &plan) continue;
      for (const auto& piece : file.pieces) {
        const auto found = section.extents.find(piece.tensor);
        if (found != section.extents.end()) found->second.push_back({&file, &piece});
      }
    }
    for (const auto& item : metadata.manifest->items) {
      if (item.item.section == plan.section && matches(pattern, item.item.name)) section.items.push_back(&item);
    }
    sections.push_back(std::move(section));
  }
  return sections;
}

void value_json(const Value& value, Json& json) {
  if (const auto* truth = std::get_if<bool>(&value.data)) {
    json.value(*truth);
  } else if (const auto* integer = std::get_if<std::int64_t>(&value.data)) {
    json.value(*integer);
  } else if (const auto* number = std::get_if<double>(&value.data)) {
    json.value(*number);
  } else if (const auto* text = std::get_if<std::string>(&value.data)) {
    json.value(*text);
  } else if (const auto* bytes = std::get_if<Value::Bytes>(&value.data)) {
    json.object().member("bytes", std::uint64_t{bytes->bytes.size()}).end();
  } else if (const auto* list = std::get_if<Value::List>(&value.data)) {
    json.array();
    for (const auto& element : *list) value_json(element, json);
    json.end();
  } else if (const auto* map = std::get_if<Value::Map>(&value.data)) {
    json.object();
    for (const auto& [key, element] : *map) value_json(element, json.key(key));
    json.end();
  } else {
    json.null();
  }
}

std::string value_text(const Value& value) {
  Json json;
  value_json(value, json);
  return json.text();
}

void print_text(const CheckpointMetadata& metadata, const std::vector<InspectedSection>& sections, std::ostream& out) {
  const auto& decision = metadata.decision;
  out << decision.id.name() << ": step " << decision.id.step.value << ", " << decision.world_size << " ranks, "
      << (decision.parent ? "continues " + decision.parent->name() : "begins a line") << '\n';
  if (!metadata.manifest->meta.empty()) out << "meta " << metadata.manifest->meta << '\n';
  for (const auto& section : sections) {
    out << section.plan->section << ":\n";
    for (const auto& [tensor, extents] : section.extents) {
      out << "  " << to_string(section.plan->tensors[tensor]) << '\n';
      for (const auto& extent : extents) {
        out << "    " << to_string(extent.piece->box) << "  " << extent.file->name << " at " << extent.offset_bytes()
            << ", " << bytes_text(extent.piece->length_bytes) << '\n';
      }
    }
    for (const auto* item : section.items) {
      out << "  " << item->item.name << " (" << to_string(item->item.scope) << ", rank " << item->rank.value
          << ") = " << value_text(item->item.value) << '\n';
    }
  }
}

void print_json(const CheckpointMetadata& metadata, const std::vector<InspectedSection>& sections, std::ostream& out) {
  const auto& decision = metadata.decision;
  Json json;
  json.object().member("id", decision.id.name()).member("step", decision.id.step.value);
  json.member("ranks", decision.world_size).key("parent");
  decision.parent ? json.value(decision.parent->name()) : json.null();
  json.member("meta", metadata.manifest->meta).key("sections").array();
  for (const auto& section : sections) {
    json.object().member("name", section.plan->section).key("tensors").array();
    for (const auto& [tensor, extents] : section.extents) {
      const auto& spec = section.plan->tensors[tensor];
      json.object().member("fqn", spec.fqn).member("dtype", to_string(spec.dtype)).member("shape", spec.shape);
      json.key("extents").array();
      for (const auto& extent : extents) {
        json.object().member("offsets", extent.piece->box.offsets).member("sizes", extent.piece->box.sizes);
        json.member("rank", extent.file->place.rank.value).member("file", extent.file->name);
        json.member("offset_bytes", extent.offset_bytes()).member("length_bytes", extent.piece->length_bytes).end();
      }
      json.end().end();
    }
    json.end().key("items").array();
    for (const auto* item : section.items) {
      json.object().member("name", item->item.name).member("scope", to_string(item->item.scope));
      json.member("rank", item->rank.value).key("value");
      value_json(item->item.value, json);
      json.end();
    }
    json.end().end();
  }
  json.end().end();
  out << json.text() << '\n';
}

}  // namespace

Result<int> inspect(const InspectArguments& arguments, std::ostream& out) {
  VCKPT_TRY(const auto name, parse_checkpoint_name(arguments.checkpoint));
  VCKPT_TRY(const auto root, Root::open(name.root));
  VCKPT_TRY(const auto metadata, root->find(name.selector));
  VCKPT_TRY(const auto files, stored_files(metadata));
  const auto sections = collect(metadata, files, arguments.pattern);
  arguments.json ? print_json(metadata, sections, out) : print_text(metadata, sections, out);
  return exit_ok;
}

}  // namespace vckpt::launch
