// A manifest in segments: joined as it was, in few segments, and refused when they do not fit each other.
#include <functional>

#include "schema/codec.h"
#include "tests/schema/random_values.h"
#include "tests/support/catch.h"

namespace vckpt {
namespace {

Manifest large_manifest(std::uint32_t files) {
  Manifest manifest;
  manifest.id = {Epoch{1}, Attempt{2}, Step{3}};
  manifest.world_size = files;
  manifest.meta = "{\"loss\": 1}";
  for (std::uint32_t rank = 0; rank < files; ++rank) {
    manifest.files.push_back({"model", Rank{rank}, 0, 0, 4096, 5 << 20, rank, {1, 2, 3, 4, 5}});
    manifest.items.push_back({Rank{rank}, {"optimizer", "rng", Scope::per_rank, {std::string(50, 'x')}}});
  }
  return manifest;
}

TEST_CASE("a manifest comes out of its segments as it went in", "[manifest]") {
  testing::RandomValues random(5);
  for (const std::size_t target : {1, 200, 1000, 1 << 20}) {
    for (int i = 0; i < 20; ++i) {
      const auto manifest = random.manifest();
      const auto joined = join_manifest(split_manifest(manifest, target));
      if (!joined) FAIL(joined.error().message);
      CHECK(*joined == manifest);
    }
  }
  CHECK(*join_manifest(split_manifest(Manifest{}, 1)) == Manifest{});
}

TEST_CASE("segments are about as large as asked for, and never too many", "[manifest]") {
  const auto manifest = large_manifest(3000);
  const auto segments = split_manifest(manifest, 64 << 10);
  CHECK(segments.size() > 5);
  for (const auto& segment : segments) CHECK(encode(segment).size() <= 64 << 10);
  CHECK(split_manifest(manifest, 1).size() <= segments_max);
  CHECK(split_manifest(manifest, 1 << 30).size() == 1);
}

TEST_CASE("segments that are not those of one manifest are corrupt", "[manifest]") {
  using Segments = std::vector<ManifestSegment>;
  const auto whole = split_manifest(large_manifest(10), 1000);
  REQUIRE(whole.size() > 2);
  const std::vector<std::function<void(Segments&)>> changes = {
      [](Segments& s) { s.clear(); },
      [](Segments& s) { s.pop_back(); },
      [](Segments& s) { s.erase(s.begin()); },
      [](Segments& s) { std::swap(s[0], s[1]); },
      [](Segments& s) { s[1] = s[0]; },
      [](Segments& s) { s.push_back(s.back()); },
      [](Segments& s) { s[1].id.step = Step{4}; },
      [](Segments& s) { s[1].plan.bytes[0] = std::byte{1}; },
      [](Segments& s) { s[1].world_size = 11; },
      [](Segments& s) { ++s[1].count; },
      [](Segments& s) { s[1].meta = "{}"; },
      [](Segments& s) { std::swap(s[0].files[0], s[0].files[1]); },
      [](Segments& s) { s[0].files[1] = s[0].files[0]; },
      [](Segments& s) { s.back().items.push_back(s.back().items.back()); },
  };
  for (std::size_t i = 0; i < changes.size(); ++i) {
    CAPTURE(i);
    auto segments = whole;
    changes[i](segments);
    const auto joined = join_manifest(std::move(segments));
    REQUIRE_FALSE(joined.has_value());
    CHECK(joined.error().code == Code::corrupt);
  }
}

}  // namespace
}  // namespace vckpt
