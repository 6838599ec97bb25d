#include "schema/codec_wire.h"

#include <limits>

#include "schema/checked.h"

namespace vckpt::wire {

void malformed(std::string what) {
  kj::throwFatalException(kj::Exception(kj::Exception::Type::FAILED, __FILE__, __LINE__, kj::heapString(what.c_str())));
}

Bytes flatten(kj::ArrayPtr<const capnp::word> words) {
  VCKPT_ASSERT(words.size() <= std::numeric_limits<std::uint32_t>::max());
  const std::uint32_t table[2] = {0, static_cast<std::uint32_t>(words.size())};
  Bytes bytes(sizeof table + words.size() * sizeof(capnp::word));
  std::memcpy(bytes.data(), table, sizeof table);
  std::memcpy(bytes.data() + sizeof table, words.begin(), words.size() * sizeof(capnp::word));
  return bytes;
}

Result<Segment> Segment::of(std::span<const std::byte> bytes) {
  std::uint32_t table[2] = {};
  if (bytes.size() < 2 * sizeof table || bytes.size() % sizeof(capnp::word) != 0) {
    return corrupt("no message has " + std::to_string(bytes.size()) + " bytes");
  }
  std::memcpy(table, bytes.data(), sizeof table);
  if (table[0] != 0) return corrupt("segment table: more than one segment");
  const auto body = bytes.subspan(sizeof table);
  if (table[1] != body.size() / sizeof(capnp::word)) {
    return corrupt("segment table: " + std::to_string(table[1]) + " words, but there are " +
                   std::to_string(body.size() / sizeof(capnp::word)));
  }
  Segment segment;
  if (reinterpret_cast<std::uintptr_t>(body.data()) % alignof(std::uint64_t) == 0) {
    segment.words_ = {reinterpret_cast<const capnp::word*>(body.data()), table[1]};
  } else {
    segment.copy_ = kj::heapArray<capnp::word>(table[1]);
    std::memcpy(segment.copy_.begin(), body.data(), body.size());
    segment.words_ = segment.copy_;
  }
  return segment;
}

capnp::ReaderOptions reader_options(kj::ArrayPtr<const capnp::word> words) {
  // Every part is read once. The slack is for what is billed above its size: empty lists and empty structs.
  capnp::ReaderOptions options;
  options.traversalLimitInWords = 2 * words.size() + 64;
  options.nestingLimit = 64;  // values take two levels for one of theirs, and are bounded by value_depth_max
  return options;
}

Digest digest_of(capnp::Data::Reader bytes) {
  Digest digest;
  if (bytes.size() != digest.bytes.size()) malformed("digest: " + std::to_string(bytes.size()) + " bytes");
  std::memcpy(digest.bytes.data(), bytes.begin(), bytes.size());
  return digest;
}

std::vector<Digest> digests_of(capnp::Data::Reader bytes) {
  require(bytes.size() % sizeof(Digest) == 0, "digests: a broken one at the end");
  std::vector<Digest> digests(bytes.size() / sizeof(Digest));
  for (std::size_t i = 0; i < digests.size(); ++i) {
    std::memcpy(digests[i].bytes.data(), bytes.begin() + i * sizeof(Digest), sizeof(Digest));
  }
  return digests;
}

std::string section_of(capnp::Text::Reader name) {
  std::string section = text(name);
  require(check_section_name(section));
  return section;
}

std::string fqn_of(capnp::Text::Reader name) {
  std::string fqn = text(name);
  require(check_fqn(fqn));
  return fqn;
}

}  // namespace vckpt::wire
