#include "coordinator/planner/load_planner.h"

#include "coordinator/planner/glob.h"
#include "tests/planner/oracle.h"
#include "tests/planner/placements.h"
#include "tests/support/catch.h"

namespace vckpt {
namespace {

constexpr std::uint64_t mib = 1 << 20;

StoredCheckpoint saved(const std::vector<SectionPlacement>& sections, std::vector<StoredItem> items = {}) {
  const auto planned = plan_save(sections);
  REQUIRE(planned.has_value());
  auto manifest = std::move(*expected_manifest(*planned->plan, CheckpointId{Epoch(1), Attempt(2), Step(3)}));
  manifest.items = std::move(items);
  return StoredCheckpoint{planned->plan, std::make_shared<const Manifest>(std::move(manifest))};
}

LoadRequest wanted(std::vector<SectionPlacement> targets, LoadOptions options = {}) {
  LoadRequest request;
  const std::size_t world = targets.front().placement.layouts.size();
  request.targets = std::move(targets);
  request.items.resize(world);
  request.staging_bytes.assign(world, 64 * mib);
  request.options = std::move(options);
  return request;
}

PlannedLoad plan(const StoredCheckpoint& stored, const LoadRequest& request) {
  auto planned = plan_load(stored, request);
  INFO((planned ? std::string() : planned.error().message));
  REQUIRE(planned.has_value());
  return std::move(*planned);
}

Error refusal(const StoredCheckpoint& stored, const LoadRequest& request) {
  const auto planned = plan_load(stored, request);
  REQUIRE_FALSE(planned.has_value());
  return planned.error();
}

bool holds(const Error& error, const std::string& part) { return error.message.find(part) != std::string::npos; }

Pieces one(const TensorSpec& spec) {
  Pieces pieces("model", 1);
  pieces.add(0, spec);
  return pieces;
}

TEST_CASE("a replicated load reads every chunk once and evenly", "[planner][load]") {
  const TensorSpec spec{"w", DType::u8, {32, mib}};
  const auto stored = saved({one(spec).placement()});
  const auto planned = plan(stored, wanted({Mesh("model", {4}).add(spec).placement()}));
  CHECK(planned.storage_bytes_read == 32 * mib);
  CHECK(planned.wanted_unique_bytes == 32 * mib);
  CHECK(planned.bytes_needed == 4 * 32 * mib);
  CHECK(planned.bytes_received == 3 * 32 * mib);
  CHECK(planned.most_loaded_read_bytes == 8 * mib);
  CHECK(planned.bound_read_bytes == Approx(8.0 * mib));
}

TEST_CASE("chunks that nobody wants are not read", "[planner][load]") {
  // Rows of 3 MiB; the first MiB of each row is wanted.
  const TensorSpec spec{"w", DType::u8, {4, 3 * mib}};
  Pieces part("model", 2);
  part.add(1, spec, Box{{0, 0}, {4, mib}});
  const auto planned = plan(saved({one(spec).placement()}), wanted({part.placement()}));
  CHECK(planned.storage_bytes_read == 4 * mib);
  CHECK(planned.bytes_received == 0);
  CHECK(planned.slices[0].reads.empty());
  CHECK(planned.slices[1].reads.size() == 4);
}

TEST_CASE("a budget below one chunk and its copies is exhausted, one that just fits is not", "[planner][load]") {
  const TensorSpec spec{"w", DType::u8, {2 * mib}};
  const auto stored = saved({one(spec).placement()});
  auto request = wanted({Mesh("model", {3}).add(spec).placement()});
  request.staging_bytes.assign(3, 2 * mib);  // the chunk, and one copy for both others
  CHECK(plan(stored, request).slices.front().rounds == 2);
  request.staging_bytes.assign(3, 2 * mib - 1);
  const auto error = refusal(stored, request);
  CHECK(error.code == Code::exhausted);
  CHECK(holds(error, std::to_string(2 * mib - 1)));
  CHECK(holds(error, "rank 0"));
}

TEST_CASE("missing and unexpected names are errors unless told otherwise", "[planner][load]") {
  const auto stored = saved({one({"a", DType::u8, {4}}).placement()});
  const auto target = one({"b", DType::u8, {4}}).placement();
  const auto missing = refusal(stored, wanted({target}));
  CHECK(missing.code == Code::not_found);
  CHECK(holds(missing, "'b'"));
  LoadOptions options;
  options.missing = Missing::keep;
  const auto unexpected = refusal(stored, wanted({target}, options));
  CHECK(unexpected.code == Code::invalid);
  CHECK(holds(unexpected, "'a'"));
  options.unexpected = Unexpected::ignore;
  const auto planned = plan(stored, wanted({target}, options));
  CHECK(planned.slices[0].missing == std::vector<std::string>{"model:b"});
  CHECK(planned.slices[0].unexpected == std::vector<std::string>{"model:a"});
  CHECK(planned.storage_bytes_read == 0);
}

TEST_CASE("only what the patterns name is loaded", "[planner][load]") {
  Pieces both("model", 1);
  both.add(0, {"layers.0.w", DType::u8, {4}}).add(0, {"head", DType::u8, {4}});
  LoadOptions options;
  options.only = {"layers.*"};
  const auto planned = plan(saved({both.placement()}), wanted({both.placement()}, options));
  CHECK(planned.bytes_needed == 4);
  CHECK(planned.slices[0].unexpected.empty());
}

TEST_CASE("globs match names", "[planner][load]") {
  CHECK(glob_matches("*", "a.b"));
  CHECK(glob_matches("a.*.w", "a.b.c.w"));
  CHECK_FALSE(glob_matches("a.*.w", "a.b.c.v"));
  CHECK(glob_matches("l?", "l7"));
  CHECK(glob_matches("l[0-3]*", "l2x"));
  CHECK_FALSE(glob_matches("l[!0-3]", "l2"));
  CHECK(glob_matches("x[0]", "x[0]"));
  CHECK(glob_matches("x[", "x["));
  CHECK_FALSE(glob_matches("", "x"));
  CHECK(glob_matches("a**b*", "ab"));
}

TEST_CASE("one stored tensor feeds two wanted names and is read once", "[planner][load]") {
  Pieces tied("model", 1);
  tied.add(0, {"embed", DType::u8, {8}}).add(0, {"head", DType::u8, {8}});
  LoadOptions options;
  options.rename = {{"head", "embed"}};
  const auto stored = saved({one({"embed", DType::u8, {8}}).placement()});
  const auto request = wanted({tied.placement()}, options);
  const auto planned = plan(stored, request);
  CHECK(planned.storage_bytes_read == 8);
  CHECK(planned.wanted_unique_bytes == 8);
  CHECK(planned.bytes_needed == 16);
  options.rename.emplace_back("head", "other");
  CHECK(refusal(stored, wanted({tied.placement()}, options)).code == Code::invalid);
}

TEST_CASE("dtypes differ only where a cast was asked for, and never drop imaginary parts", "[planner][load]") {
  const auto stored = saved({one({"w", DType::f32, {4}}).placement()});
  const auto error = refusal(stored, wanted({one({"w", DType::bf16, {4}}).placement()}));
  CHECK(error.code == Code::invalid);
  CHECK(holds(error, "f32"));
  CHECK(holds(error, "bf16"));
  LoadOptions options;
  options.cast = true;
  CHECK(plan(stored, wanted({one({"w", DType::bf16, {4}}).placement()}, options)).bytes_needed == 16);
  const auto complex = saved({one({"w", DType::c64, {4}}).placement()});
  CHECK(holds(refusal(complex, wanted({one({"w", DType::f32, {4}}).placement()}, options)), "imaginary"));
}

TEST_CASE("a resized tensor loads the common box and says what lies outside", "[planner][load]") {
  const auto stored = saved({one({"embed", DType::u8, {5, 4}}).placement()});
  const TensorSpec grown{"embed", DType::u8, {8, 4}};
  Pieces halves("model", 3);
  halves.add(0, grown, Box{{0, 0}, {3, 4}}).add(1, grown, Box{{3, 0}, {3, 4}}).add(2, grown, Box{{6, 0}, {2, 4}});
  CHECK(holds(refusal(stored, wanted({halves.placement()})), "[5, 4]"));
  LoadOptions options;
  options.resize = {{"emb*", Outside::zero}};
  const auto request = wanted({halves.placement()}, options);
  const auto planned = plan(stored, request);
  CHECK(planned.slices[0].gaps.empty());
  REQUIRE(planned.slices[1].gaps.size() == 1);
  CHECK(planned.slices[1].gaps[0].target == Box{{3, 0}, {3, 4}});
  CHECK(planned.slices[1].gaps[0].stored == Box{{3, 0}, {2, 4}});
  REQUIRE(planned.slices[2].gaps.size() == 1);
  CHECK(empty(planned.slices[2].gaps[0].stored));
  CHECK(planned.slices[2].tensors.at(planned.slices[2].gaps[0].tensor).wanted == "embed");
  CHECK(planned.bytes_needed == 20);
}

TEST_CASE("one rank cannot want one box twice", "[planner][load]") {
  const TensorSpec spec{"w", DType::u8, {8}};
  Pieces twice("model", 1);
  twice.add(0, spec, Box{{0}, {4}}).add(0, spec, {}, Range{0, 4});
  CHECK(holds(refusal(saved({one(spec).placement()}), wanted({twice.placement()})), "twice"));
}

TEST_CASE("a manifest that does not fit its plan is corrupt", "[planner][load]") {
  const TensorSpec spec{"w", DType::u8, {8}};
  const auto stored = saved({one(spec).placement()});
  const auto request = wanted({one(spec).placement()});
  const auto with = [&](auto change) {
    Manifest manifest = *stored.manifest;
    change(manifest);
    return refusal({stored.plan, std::make_shared<const Manifest>(std::move(manifest))}, request).code;
  };
  CHECK(with([](Manifest& m) { m.files[0].data_bytes = 7; }) == Code::corrupt);
  CHECK(with([](Manifest& m) { m.files.clear(); }) == Code::corrupt);
  CHECK(with([](Manifest& m) { m.world_size = 2; }) == Code::corrupt);
  CHECK(with([](Manifest& m) { m.plan.bytes[3] = std::byte{9}; }) == Code::corrupt);  // written, yet without digests
}

TEST_CASE("a stored plan that is out of bounds or holds too little is corrupt", "[planner][load]") {
  const TensorSpec spec{"w", DType::u8, {8}};
  const auto stored = saved({Mesh("model", {2}).add(spec, {{0, 0, 0}}).placement()});
  const auto request = wanted({one(spec).placement()});
  const auto with = [&](auto change) {
    SavePlan plan = *stored.plan;
    change(plan.sections[0]);
    return refusal({std::make_shared<const SavePlan>(std::move(plan)), stored.manifest}, request).code;
  };
  CHECK(with([](SectionPlan& s) { s.ranks[0].body = 1; }) == Code::corrupt);
  CHECK(with([](SectionPlan& s) { s.ranks[0].coordinates = {2}; }) == Code::corrupt);
  CHECK(with([](SectionPlan& s) { s.ranks[0].coordinates = {}; }) == Code::corrupt);
  CHECK(with([](SectionPlan& s) { s.bodies[0].entries[0].tensor = 1; }) == Code::corrupt);
  CHECK(with([](SectionPlan& s) { s.bodies[0].entries[0].cuts[0].dim = 1; }) == Code::corrupt);
  CHECK(with([](SectionPlan& s) { s.ranks[0].pieces = {{0, Box{{6}, {3}}}}; }) == Code::corrupt);
  CHECK(with([](SectionPlan& s) { s.ranks[0].coordinates = {1}; }) == Code::corrupt);  // one half twice
}

Value number(std::int64_t value) { return Value{value}; }

StoredItem item(std::uint32_t rank, const std::string& name, Scope scope, Value value) {
  return StoredItem{Rank(rank), Item{"model", name, scope, std::move(value)}};
}

TEST_CASE("items come by their scope", "[planner][load]") {
  const TensorSpec spec{"w", DType::u8, {8}};
  const auto numbers = [](std::int64_t first, std::int64_t count) {
    Value::List list;
    for (std::int64_t i = 0; i < count; ++i) list.push_back(number(first + i));
    return Value{std::move(list)};
  };
  const auto stored =
      saved({Mesh("model", {2}).add(spec, {{0, 0, 0}}).placement()},
            {item(0, "rng", Scope::per_rank, number(10)), item(1, "rng", Scope::per_rank, number(11)),
             item(0, "seen", Scope::splittable, numbers(0, 4)), item(1, "seen", Scope::splittable, numbers(4, 1)),
             item(0, "step", Scope::replicated, number(7))});
  const auto request_of = [&](std::uint32_t world, LoadOptions options) {
    auto request = wanted({Mesh("model", {world}).add(spec, {{0, 0, 0}}).placement()}, std::move(options));
    for (auto& items : request.items) {
      for (const auto* name : {"rng", "seen", "step"}) items.push_back(ItemOffer{"model", name, Scope::replicated, {}});
    }
    return request;
  };
  const auto same = plan(stored, request_of(2, {}));
  CHECK(same.slices[1].items[0].value == number(11));
  CHECK(same.slices[0].items[1].value == numbers(0, 3));
  CHECK(same.slices[1].items[1].value == numbers(3, 2));
  CHECK(same.slices[1].items[2].value == number(7));
  const auto exact = refusal(stored, request_of(3, {}));
  CHECK(exact.code == Code::invalid);
  CHECK(holds(exact, "'rng'"));
  LoadOptions gather;
  gather.per_rank = PerRank::gather;
  CHECK(plan(stored, request_of(3, gather)).slices[2].items[0].value ==
        Value{Value::Map{{"0", number(10)}, {"1", number(11)}}});
  LoadOptions drop;
  drop.per_rank = PerRank::drop;
  const auto dropped = plan(stored, request_of(3, drop));
  REQUIRE(dropped.slices[2].items.size() == 2);
  CHECK(dropped.slices[2].items[0].value == numbers(4, 1));
  auto absent = request_of(2, {});
  absent.items[1].push_back(ItemOffer{"model", "absent", Scope::replicated, {}});
  CHECK(refusal(stored, absent).code == Code::not_found);
  absent.options.missing = Missing::keep;
  CHECK(plan(stored, absent).slices[0].missing == std::vector<std::string>{"model:absent"});
}

}  // namespace
}  // namespace vckpt
