// Value trees and items.
#include <unordered_set>

#include "schema/codec_columns.h"

namespace vckpt::wire {
static void write(Value::Builder builder, const vckpt::Value& value);

namespace {

struct ValueWriter {
  Value::Builder builder;
  void operator()(std::monostate) { builder.setNull(); }
  void operator()(bool value) { builder.setBoolean(value); }
  void operator()(std::int64_t value) { builder.setInteger(value); }
  void operator()(double value) { builder.setNumber(value); }
  void operator()(const std::string& value) { builder.setText(text(value)); }
  void operator()(const vckpt::Value::Bytes& value) { builder.setBytes(blob(value.bytes)); }
  void operator()(const vckpt::Value::List& values) { write_each(builder.initList(list_size(values.size())), values); }
  void operator()(const vckpt::Value::Map& map) {
    auto group = builder.initMap();
    write_names(group.initKeys(), map, [](const auto& member) -> std::string_view { return member.first; });
    auto values = group.initValues(list_size(map.size()));
    for (std::size_t i = 0; i < map.size(); ++i) write(values[static_cast<unsigned>(i)], map[i].second);
  }
};

static vckpt::Value read_value(Value::Reader reader, std::size_t depth);

vckpt::Value::Map read_map(Value::Map::Reader reader, std::size_t depth) {
  auto keys = within("keys", [&] { return read(reader.getKeys()); });
  const auto values = reader.getValues();
  require(keys.size() == values.size(), "map: columns of unequal length");
  std::unordered_set<std::string_view> seen;
  for (const auto& key : keys) require(seen.insert(key).second, "map: a key stands twice");
  vckpt::Value::Map map;
  map.reserve(keys.size());
  for (unsigned i = 0; i < values.size(); ++i) {
    vckpt::Value value = read_value(values[i], depth + 1);
    map.emplace_back(keys[i], std::move(value));
  }
  return map;
}

// `depth` counts from 1 for a tree's root.
vckpt::Value read_value(Value::Reader reader, std::size_t depth) {
  require(depth <= value_depth_max, "value: nested too deep");
  switch (reader.which()) {
    case Value::NULL_: return {};
    case Value::BOOLEAN: return {reader.getBoolean()};
    case Value::INTEGER: return {reader.getInteger()};
    case Value::NUMBER: return {reader.getNumber()};
    case Value::TEXT: return {text(reader.getText())};
    case Value::BYTES: {
      const auto bytes = reader.getBytes();
      return {vckpt::Value::Bytes{std::string(reinterpret_cast<const char*>(bytes.begin()), bytes.size())}};
    }
    case Value::LIST: {
      vckpt::Value::List list;
      const auto values = reader.getList();
      list.reserve(values.size());
      for (const auto value : values) list.push_back(read_value(value, depth + 1));
      return {std::move(list)};
    }
    case Value::MAP: return {read_map(reader.getMap(), depth)};
    case Value::UNSET: break;
  }
  malformed("value: no such kind");
}

}  // namespace

static void write(Value::Builder builder, const vckpt::Value& value) { std::visit(ValueWriter{builder}, value.data); }

void write(Item::Builder builder, const vckpt::Item& item) {
  builder.setSection(text(item.section));
  builder.setName(text(item.name));
  builder.setScope(static_cast<std::uint8_t>(item.scope));
  write(builder.initValue(), item.value);
}

vckpt::Item read(Item::Reader reader) {
  vckpt::Item item;
  item.section = section_of(reader.getSection());
  item.name = fqn_of(reader.getName());
  within("item '" + item.section + ":" + item.name + "'", [&] {
    item.scope = enum_of(reader.getScope(), Scope::splittable, "scope");
    item.value = read_value(reader.getValue(), 1);
  });
  return item;
}

}  // namespace vckpt::wire

namespace vckpt {

Bytes encode(const Value& value) {
  return wire::encode_as<wire::Value>(value, [](auto builder, const auto& tree) { wire::write(builder, tree); });
}

Result<Value> decode_value(std::span<const std::byte> bytes) {
  return wire::decode_as<wire::Value, Value>("value", bytes, [](auto reader) { return wire::read_value(reader, 1); });
}

}  // namespace vckpt
