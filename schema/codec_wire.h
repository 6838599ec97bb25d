// Private to the codec: the one seam to Cap'n Proto. Inside, decoders speak kj's dialect: whatever is
// malformed throws kj::Exception, from the library or from malformed(); decode_as turns each into `corrupt`, and
// nothing escapes. A message is accepted only if it is the very encoding of what was read, so a value has one form,
// aliased or overlong parts are refused, and a reader refuses what it does not know instead of dropping it.
#pragma once

#include <capnp/message.h>
#include <kj/exception.h>

#include <algorithm>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "schema/codec.h"
#include "storage.capnp.h"

namespace vckpt::wire {

// ---- the seam

[[noreturn]] void malformed(std::string what);

// What `read` throws gets `where: ` in front.
template <typename Read>
auto within(std::string_view where, Read&& read) {
  try {
    return read();
  } catch (const kj::Exception& error) {
    malformed(std::string(where) + ": " + std::string(error.getDescription().cStr()));
  }
}

// One segment behind its segment table.
Bytes flatten(kj::ArrayPtr<const capnp::word> segment);

// One segment behind its table, in words; corrupt when the table says anything else. Copies only what is not aligned.
class Segment {
 public:
  static Result<Segment> of(std::span<const std::byte> bytes);
  kj::ArrayPtr<const capnp::word> words() const { return words_; }

 private:
  kj::Array<capnp::word> copy_;
  kj::ArrayPtr<const capnp::word> words_;
};

capnp::ReaderOptions reader_options(kj::ArrayPtr<const capnp::word> words);

template <typename Root, typename T, typename Write>
Bytes encode_as(const T& value, Write&& write) {
  capnp::MallocMessageBuilder message;
  const auto root = message.initRoot<Root>();
  write(root, value);
  return flatten(capnp::canonicalize(root.asReader()));
}

// `behind_bytes`: what `encode` puts behind the message; the caller has checked it.
template <typename Root, typename T, typename Read>
Result<T> decode_as(std::string_view what, std::span<const std::byte> bytes, Read&& read,
                    std::size_t behind_bytes = 0) {
  const auto segment = Segment::of(bytes.first(bytes.size() - behind_bytes));
  if (!segment) return segment.error().with_context(what);
  try {
    const kj::ArrayPtr<const capnp::word> segments[] = {segment->words()};
    capnp::SegmentArrayMessageReader message(kj::arrayPtr(segments, 1), reader_options(segments[0]));
    T value = read(message.getRoot<Root>());
    const Bytes again = encode(value);
    if (!std::equal(again.begin(), again.end(), bytes.begin(), bytes.end())) {
      return corrupt(std::string(what) + ": not in canonical form, or from a newer version");
    }
    return value;
  } catch (const kj::Exception& error) {
    return corrupt(std::string(what) + ": " + error.getDescription().cStr());
  }
}

inline void require(bool holds, std::string_view what) {
  if (!holds) malformed(std::string(what));
}
template <typename T>
void require(const Result<T>& result) {
  if (!result) malformed(result.error().message);
}

// ---- single fields

inline capnp::Text::Reader text(const std::string& value) { return {value.c_str(), value.size()}; }
inline std::string text(capnp::Text::Reader value) { return {value.begin(), value.size()}; }
inline capnp::Data::Reader blob(std::string_view value) {
  return {reinterpret_cast<const kj::byte*>(value.data()), value.size()};
}
inline capnp::Data::Reader blob(const Digest& digest) {
  return {reinterpret_cast<const kj::byte*>(digest.bytes.data()), digest.bytes.size()};
}
Digest digest_of(capnp::Data::Reader bytes);
std::vector<Digest> digests_of(capnp::Data::Reader bytes);

// An enumeration whose numbers run from 1 to `last`.
template <typename Enum>
Enum enum_of(std::uint8_t number, Enum last, std::string_view field) {
  if (number == 0 || number > static_cast<std::uint8_t>(last)) {
    malformed(std::string(field) + ": no such number: " + std::to_string(number));
  }
  return static_cast<Enum>(number);
}

std::string section_of(capnp::Text::Reader name);
std::string fqn_of(capnp::Text::Reader name);

}  // namespace vckpt::wire
