// Random values of everything the codec writes. Values are valid: their encodings must decode to themselves.
#pragma once

#include <random>
#include <string>

#include "schema/codec.h"

namespace vckpt::testing {

class RandomValues {
 public:
  explicit RandomValues(std::uint64_t seed) : random_(seed) {}

  std::uint64_t below(std::uint64_t bound) { return random_() % bound; }
  std::uint64_t number();  // small, large and extreme ones
  std::string text();      // any bytes
  std::string section();
  std::string fqn(std::uint64_t unique);
  Digest digest();
  CheckpointId id();
  Error error();

  Box box_within(const Dims& shape);  // not empty unless the shape is
  std::vector<TensorSpec> tensors();  // sorted by fqn, none empty
  LayoutBody body();
  Value value(std::size_t depth_left = 4);
  Item item(std::uint64_t unique);
  FileRecord file(std::uint64_t unique);
  SavePlan plan();

  RunRecord run();
  EpochRecord epoch();
  Manifest manifest();
  ManifestSegment segment();
  Decision decision();
  Report report();
  EnvelopedMessage message(std::size_t kind);  // the index in Message

 private:
  std::vector<SectionOffer> offers();
  std::vector<ItemOffer> item_offers();
  std::vector<Piece> pieces(const std::vector<TensorSpec>& tensors);
  std::vector<Slice> slices(const std::vector<StoredTensor>& tensors);
  SaveSlice save_slice();
  LoadSlice load_slice();
  Message content(std::size_t kind);

  std::mt19937_64 random_;
};

}  // namespace vckpt::testing
