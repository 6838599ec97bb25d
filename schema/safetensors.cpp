#include "schema/safetensors.h"

#include <algorithm>
#include <array>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>
#include <unordered_set>
#include <utility>

#include "schema/checked.h"
#include "schema/names.h"

namespace vckpt::safetensors {
namespace {

using Json = nlohmann::json;

constexpr std::size_t length_word_bytes = 8;
constexpr std::size_t skipped_depth_max = 32;  // of fields that the format does not know
constexpr std::size_t quoted_bytes_max = 200;

// A name for a message: foreign names may be as long as a header.
std::string quote(std::string_view name) {
  if (name.size() <= quoted_bytes_max) return "'" + std::string(name) + "'";
  std::size_t end = quoted_bytes_max;
  while (end > 0 && (static_cast<unsigned char>(name[end]) & 0xC0) == 0x80) --end;
  return "'" + std::string(name.substr(0, end)) + "...'";
}

// Bytes of a shape; empty when they do not fit, or when the last element ends inside a byte.
std::optional<std::uint64_t> whole_bytes(DType dtype, const Dims& shape) {
  const auto bytes = shape_bytes(dtype, shape);
  if (!bytes || elements(whole(shape)) % 8 * bits(dtype) % 8 != 0) return std::nullopt;
  return bytes;
}

// Takes the header as a stream of JSON events, so that duplicate keys are seen, nesting costs nothing and memory stays
// in proportion to what the header really holds. Stops at the first breach, which `failure` names.
class HeaderEvents final : public nlohmann::json_sax<Json> {
 public:
  std::vector<Tensor> tensors;
  std::map<std::string, std::string> metadata;
  std::string failure;

  bool null() override { return scalar("null"); }
  bool boolean(bool) override { return scalar("a boolean"); }
  bool number_integer(number_integer_t number) override {
    return scalar("the negative number " + std::to_string(number));
  }
  bool number_float(number_float_t, const string_t& text) override { return scalar("the number " + quote(text)); }
  bool binary(binary_t&) override { return scalar("binary"); }

  bool number_unsigned(number_unsigned_t number) override {
    if (state_ == State::shape) {
      tensor_.shape.push_back(number);
      if (tensor_.shape.size() <= dims_max) return true;
      return fail_tensor("has more than " + std::to_string(dims_max) + " dimensions");
    }
    if (state_ == State::offsets) {
      if (offset_count_ == offsets_.size()) return fail_tensor("has more than two data_offsets");
      offsets_[offset_count_++] = number;
      return true;
    }
    return scalar("the number " + std::to_string(number));
  }

  bool string(string_t& text) override {
    if (state_ == State::dtype) {
      const auto dtype = dtype_from_safetensors(text);
      if (!dtype) return fail_tensor("has the unknown dtype " + quote(text));
      tensor_.dtype = *dtype;
      state_ = State::field_key;
      return true;
    }
    if (state_ == State::metadata_value) {
      metadata[metadata_key_] = std::move(text);
      state_ = State::metadata_key;
      return true;
    }
    return scalar("a string");
  }

  bool start_object(std::size_t) override {
    switch (state_) {
      case State::header: state_ = State::name; return true;
      case State::tensor: state_ = State::field_key; return true;
      case State::metadata: state_ = State::metadata_key; return true;
      case State::skipped: return deeper();
      default: return unexpected("an object");
    }
  }

  bool key(string_t& text) override {
    switch (state_) {
      case State::name: return tensor_or_metadata(text);
      case State::field_key: return field(text);
      case State::metadata_key:
        if (metadata.contains(text)) return fail("__metadata__ has the key " + quote(text) + " twice");
        metadata_key_ = std::move(text);
        state_ = State::metadata_value;
        return true;
      default: return true;  // inside of a skipped field
    }
  }

  bool end_object() override {
    switch (state_) {
      case State::field_key: return finish_tensor();
      case State::metadata_key: state_ = State::name; return true;
      case State::name: state_ = State::done; return true;
      default: return shallower();
    }
  }

  bool start_array(std::size_t) override {
    switch (state_) {
      case State::shape_array: state_ = State::shape; return true;
      case State::offsets_array: state_ = State::offsets; return true;
      case State::skipped: return deeper();
      default: return unexpected("an array");
    }
  }

  bool end_array() override {
    if (state_ == State::skipped) return shallower();
    if (state_ == State::offsets && offset_count_ != offsets_.size())
      return fail_tensor("has fewer than two data_offsets");
    state_ = State::field_key;
    return true;
  }

  bool parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception&) override {
    return fail("the header is not JSON at byte " + std::to_string(length_word_bytes + position));
  }

 private:
  // What comes next.
  enum class State : std::uint8_t {
    header,
    name,
    tensor,
    field_key,
    dtype,
    shape_array,
    shape,
    offsets_array,
    offsets,
    metadata,
    metadata_key,
    metadata_value,
    skipped,
    done,
  };

  bool fail(std::string what) {
    failure = std::move(what);
    return false;
  }
  bool fail_tensor(const std::string& what) { return fail("tensor " + quote(tensor_.name) + " " + what); }

  bool unexpected(const std::string& found) {
    switch (state_) {
      case State::tensor: return fail_tensor("is " + found + " instead of an object");
      case State::dtype: return fail_tensor("has " + found + " as its dtype");
      case State::shape_array: return fail_tensor("has " + found + " as its shape");
      case State::shape: return fail_tensor("has " + found + " as a dimension");
      case State::offsets_array: return fail_tensor("has " + found + " as its data_offsets");
      case State::offsets: return fail_tensor("has " + found + " as an offset");
      case State::metadata: return fail("__metadata__ is " + found + " instead of an object");
      case State::metadata_value: return fail("__metadata__ has " + found + " under " + quote(metadata_key_));
      default: return fail("the header holds " + found + " where none belongs");
    }
  }

  bool scalar(const std::string& found) {
    if (state_ != State::skipped) return unexpected(found);
    if (depth_ == 0) state_ = State::field_key;
    return true;
  }

  bool deeper() {
    if (++depth_ <= skipped_depth_max) return true;
    return fail_tensor("has an unknown field that is nested too deeply");
  }

  bool shallower() {
    if (--depth_ == 0) state_ = State::field_key;
    return true;
  }

  bool tensor_or_metadata(string_t& text) {
    if (!names_.insert(text).second) return fail("the key " + quote(text) + " stands in the header twice");
    if (text == "__metadata__") {
      state_ = State::metadata;
      return true;
    }
    tensor_ = Tensor{};
    tensor_.name = std::move(text);
    offset_count_ = 0;
    fields_.clear();
    state_ = State::tensor;
    return true;
  }

  bool field(string_t& text) {
    if (!fields_.insert(text).second) return fail_tensor("has the field " + quote(text) + " twice");
    state_ = State::skipped;
    if (text == "dtype") state_ = State::dtype;
    if (text == "shape") state_ = State::shape_array;
    if (text == "data_offsets") state_ = State::offsets_array;
    return true;
  }

  bool finish_tensor() {
    for (const char* needed : {"dtype", "shape", "data_offsets"}) {
      if (!fields_.contains(needed)) return fail_tensor("has no " + std::string(needed));
    }
    std::tie(tensor_.begin_bytes, tensor_.end_bytes) = std::tie(offsets_[0], offsets_[1]);
    const std::string range = to_string(Range{tensor_.begin_bytes, tensor_.end_bytes});
    if (tensor_.begin_bytes > tensor_.end_bytes) return fail_tensor("has the reversed data_offsets " + range);
    const std::string kind = std::string(to_string(tensor_.dtype)) + " " + to_string(tensor_.shape);
    const auto bytes = whole_bytes(tensor_.dtype, tensor_.shape);
    if (!bytes) return fail_tensor("has no whole number of bytes below 2^63: " + kind);
    if (*bytes != tensor_.end_bytes - tensor_.begin_bytes) {
      return fail_tensor("of " + std::to_string(*bytes) + " bytes (" + kind + ") has the data_offsets " + range);
    }
    tensors.push_back(std::move(tensor_));
    state_ = State::name;
    return true;
  }

  State state_ = State::header;
  std::size_t depth_ = 0;  // within a skipped field
  Tensor tensor_;
  std::array<std::uint64_t, 2> offsets_{};
  std::size_t offset_count_ = 0;
  std::set<std::string> fields_;
  std::string metadata_key_;
  std::unordered_set<std::string> names_;
};

// Sorts the tensors into data order; corrupt unless they cover the data exactly.
Result<void> check_cover(std::vector<Tensor>& tensors, std::uint64_t data_bytes) {
  std::sort(tensors.begin(), tensors.end(), [](const Tensor& a, const Tensor& b) {
    return std::tie(a.begin_bytes, a.end_bytes, a.name) < std::tie(b.begin_bytes, b.end_bytes, b.name);
  });
  std::uint64_t covered = 0;
  for (const auto& tensor : tensors) {
    if (tensor.begin_bytes != covered) {
      return corrupt("tensor " + quote(tensor.name) + " begins at byte " + std::to_string(tensor.begin_bytes) +
                     " of the data, " + (tensor.begin_bytes < covered ? "inside" : "behind a hole at the end") +
                     " of the tensor before, which ends at " + std::to_string(covered));
    }
    covered = tensor.end_bytes;
    if (covered > data_bytes) {
      return corrupt("tensor " + quote(tensor.name) + " ends at byte " + std::to_string(covered) + " of only " +
                     std::to_string(data_bytes) + " bytes of data");
    }
  }
  if (covered != data_bytes) {
    return corrupt("the tensors cover " + std::to_string(covered) + " of " + std::to_string(data_bytes) +
                   " bytes of data");
  }
  return {};
}

std::string json_string(std::string_view text) { return Json(text).dump(); }  // throws where text is not UTF-8

std::string length_word(std::uint64_t length) {
  std::string word;
  for (std::size_t i = 0; i < length_word_bytes; ++i) word.push_back(static_cast<char>((length >> (8 * i)) & 0xFF));
  return word;
}

Result<void> append_tensor(const Tensor& tensor, std::uint64_t expected_begin, std::string& json) {
  const auto dtype = safetensors_name(tensor.dtype);
  const auto bytes = whole_bytes(tensor.dtype, tensor.shape);
  const auto end = bytes ? checked_add(tensor.begin_bytes, *bytes) : std::nullopt;
  if (!dtype || !end || tensor.begin_bytes != expected_begin || *end != tensor.end_bytes) {
    return invalid("tensor " + quote(tensor.name) + " (" + std::string(to_string(tensor.dtype)) + " " +
                   to_string(tensor.shape) + " at " + to_string(Range{tensor.begin_bytes, tensor.end_bytes}) +
                   ") does not fit a safetensors file at byte " + std::to_string(expected_begin) + " of its data");
  }
  json += json_string(tensor.name) + ":{\"dtype\":\"" + std::string(*dtype) + "\",\"shape\":[";
  for (std::size_t d = 0; d < tensor.shape.size(); ++d) json += (d == 0 ? "" : ",") + std::to_string(tensor.shape[d]);
  json += "],\"data_offsets\":[" + std::to_string(tensor.begin_bytes) + "," + std::to_string(tensor.end_bytes) + "]}";
  return {};
}

Result<std::string> to_json(const std::vector<Tensor>& tensors, const std::map<std::string, std::string>& metadata) {
  std::string json = "{";
  std::unordered_set<std::string_view> names{"__metadata__"};
  const char* separator = "";
  if (!metadata.empty()) {
    json += "\"__metadata__\":{";
    for (const auto& [key, value] : metadata) {
      json += separator + json_string(key) + ":" + json_string(value);
      separator = ",";
    }
    json += "}";
  }
  std::uint64_t end = 0;
  for (const auto& tensor : tensors) {
    if (!names.insert(tensor.name).second) return invalid("the name " + quote(tensor.name) + " is taken in this file");
    json += separator;
    VCKPT_TRY_VOID(append_tensor(tensor, end, json));
    separator = ",";
    end = tensor.end_bytes;
    if (json.size() > header_length_max) break;
  }
  return json + "}";
}

}  // namespace

Result<std::uint64_t> header_bytes(std::span<const std::byte> first_8_bytes, std::uint64_t file_bytes) {
  if (first_8_bytes.size() < length_word_bytes || file_bytes < length_word_bytes) {
    return corrupt("a file of " + std::to_string(std::min<std::uint64_t>(first_8_bytes.size(), file_bytes)) +
                   " bytes is too short for a safetensors header");
  }
  std::uint64_t length = 0;
  for (std::size_t i = length_word_bytes; i-- > 0;) {
    length = (length << 8) | std::to_integer<std::uint64_t>(first_8_bytes[i]);
  }
  if (length < 2 || length > header_length_max) {
    return corrupt("a header of " + std::to_string(length) + " bytes; it has 2 to " +
                   std::to_string(header_length_max));
  }
  if (length > file_bytes - length_word_bytes) {
    return corrupt("a header of " + std::to_string(length) + " bytes leaves the file of " + std::to_string(file_bytes) +
                   " bytes");
  }
  return length_word_bytes + length;
}

Result<Header> parse(std::span<const std::byte> header, std::uint64_t file_bytes) {
  VCKPT_TRY(const std::uint64_t bytes,
            header_bytes(header.first(std::min(header.size(), length_word_bytes)), file_bytes));
  if (header.size() != bytes) {
    return corrupt("a header of " + std::to_string(bytes) + " bytes, of which " + std::to_string(header.size()) +
                   " are there");
  }
  const auto json = header.subspan(length_word_bytes);
  const auto* first = reinterpret_cast<const char*>(json.data());
  // Some parsers, the one below among them, skip a byte order mark and take NUL for the end of their input.
  if (*first != '{') return corrupt("the header does not begin with '{'");
  if (std::find(json.begin(), json.end(), std::byte{0}) != json.end()) return corrupt("the header holds a NUL byte");

  HeaderEvents events;
  if (!Json::sax_parse(first, first + json.size(), &events)) return corrupt(std::move(events.failure));
  Header result{bytes, file_bytes - bytes, std::move(events.tensors), std::move(events.metadata)};
  VCKPT_TRY_VOID(check_cover(result.tensors, result.data_bytes));
  return result;
}

Result<std::string> write(const std::vector<Tensor>& tensors, const std::map<std::string, std::string>& metadata,
                          std::uint64_t alignment_bytes) {
  VCKPT_ASSERT(alignment_bytes > 0);
  try {
    VCKPT_TRY(std::string json, to_json(tensors, metadata));
    const std::uint64_t total = round_up(length_word_bytes + json.size(), alignment_bytes);
    if (total - length_word_bytes > header_length_max) {
      return exhausted("the header of a file of " + std::to_string(tensors.size()) + " tensors exceeds " +
                       std::to_string(header_length_max) + " bytes");
    }
    json.resize(total - length_word_bytes, ' ');
    return length_word(json.size()) + json;
  } catch (const Json::exception&) {  // the only one that to_json's json_string throws
    return invalid("a name or a metadata text of the file is not UTF-8");
  }
}

Result<std::string> write_data_file_header(const std::vector<TensorSpec>& tensors,
                                           const std::vector<PlacedPiece>& pieces) {
  std::vector<Tensor> stored;
  std::map<std::string, std::string> metadata;
  stored.reserve(pieces.size());
  for (const auto& piece : pieces) {
    const TensorSpec& spec = tensors[piece.tensor];
    Tensor tensor{names::piece(spec, piece.box), spec.dtype, piece.box.sizes, piece.offset_bytes,
                  piece.offset_bytes + piece.length_bytes};
    if (!safetensors_name(spec.dtype) || !whole_bytes(spec.dtype, piece.box.sizes)) {
      tensor.dtype = DType::u8;
      tensor.shape = to_byte_box(spec, piece.box).sizes;
      metadata["vckpt.dtype:" + tensor.name] = std::string(to_string(spec.dtype));
    }
    stored.push_back(std::move(tensor));
  }
  return write(stored, metadata);
}

}  // namespace vckpt::safetensors
