// Private to the codec: what is many as columns, and the nouns that stand in several messages. Readers throw what is
// malformed, as codec_wire.h says; indices and boxes are checked against the tensors that they belong to.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "schema/codec_wire.h"
#include "storage.capnp.h"

namespace vckpt::wire {

// ---- columns

using Numbers32 = std::vector<std::uint32_t>;
using Numbers64 = std::vector<std::uint64_t>;

template <typename List, typename Number>
void fill(List list, const std::vector<Number>& numbers) {
  for (std::size_t i = 0; i < numbers.size(); ++i) list.set(static_cast<unsigned>(i), numbers[i]);
}
template <typename Number, typename List>
std::vector<Number> numbers_of(List list) {
  std::vector<Number> numbers(list.size());
  for (unsigned i = 0; i < list.size(); ++i) numbers[i] = list[i];
  return numbers;
}

// Takes `count` numbers from the front of what is left of a column; malformed when there are fewer.
template <typename Number>
std::span<const Number> take(std::span<const Number>& rest, std::uint64_t count, std::string_view column) {
  if (count > rest.size()) malformed(std::string(column) + ": too short");
  const auto front = rest.first(static_cast<std::size_t>(count));
  rest = rest.subspan(static_cast<std::size_t>(count));
  return front;
}

unsigned list_size(std::size_t count);

void write(Names::Builder builder, const std::vector<std::string_view>& names);
std::vector<std::string> read(Names::Reader reader);
template <typename Elements, typename Name>
void write_names(Names::Builder builder, const Elements& elements, Name&& name) {
  std::vector<std::string_view> names;
  names.reserve(elements.size());
  for (const auto& element : elements) names.push_back(name(element));
  write(builder, names);
}
inline void write(Names::Builder builder, const std::vector<std::string>& names) {
  write_names(builder, names, [](const std::string& name) -> std::string_view { return name; });
}

void write(Boxes::Builder builder, const std::vector<const Box*>& boxes);
std::vector<Box> read(Boxes::Reader reader);

void write(Tensors::Builder builder, const std::vector<const TensorSpec*>& tensors);
std::vector<TensorSpec> read(Tensors::Reader reader);
void write(Entries::Builder builder, const std::vector<Entry>& entries);
std::vector<Entry> read(Entries::Reader reader, const std::vector<TensorSpec>& tensors);
void write(Pieces::Builder builder, const std::vector<const Piece*>& pieces);
std::vector<Piece> read(Pieces::Reader reader, const std::vector<TensorSpec>& tensors);

template <typename T>
std::vector<const T*> pointers(const std::vector<T>& values) {
  std::vector<const T*> result;
  result.reserve(values.size());
  for (const auto& value : values) result.push_back(&value);
  return result;
}
void require_sorted(const std::vector<TensorSpec>& tensors);

// ---- nouns that stand in several messages

void write(CheckpointId::Builder builder, const vckpt::CheckpointId& id);
vckpt::CheckpointId read(CheckpointId::Reader reader);
void write(LayoutBody::Builder builder, const vckpt::LayoutBody& body);
vckpt::LayoutBody read(LayoutBody::Reader reader);
void write(Item::Builder builder, const vckpt::Item& item);
vckpt::Item read(Item::Reader reader);
void write(FileRecord::Builder builder, const vckpt::FileRecord& file);
vckpt::FileRecord read(FileRecord::Reader reader);
// A record that has the digests of some chunks only, from first_chunk on.
vckpt::FileRecord read_part(FileRecord::Reader reader, std::uint64_t first_chunk);

template <typename ListBuilder, typename T>
void write_each(ListBuilder list, const std::vector<T>& values) {
  for (std::size_t i = 0; i < values.size(); ++i) write(list[static_cast<unsigned>(i)], values[i]);
}
template <typename T, typename List>
std::vector<T> read_each(List list, std::string_view field) {
  std::vector<T> values;
  values.reserve(list.size());
  for (const auto element : list) values.push_back(within(field, [&] { return read(element); }));
  return values;
}

}  // namespace vckpt::wire
