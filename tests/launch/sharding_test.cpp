#include "launch/sharding.h"

#include <map>
#include <set>

#include "tests/support/catch.h"

using namespace vckpt;
using namespace vckpt::launch;

namespace {

std::vector<SectionPlacement> sharded(const char* model, const char* layout, Optimizer optimizer = Optimizer::adam) {
  return shard(model_named(model).value(), parse_parallel(layout).value(), optimizer).value();
}

std::size_t distinct_bodies(const Placement& placement) {
  std::set<const LayoutBody*> bodies;
  for (const auto& layout : placement.layouts) bodies.insert(layout.body.get());
  return bodies.size();
}

Held held_by(const SectionPlacement& section, std::uint32_t rank, const std::string& fqn) {
  const auto& layout = section.placement.layouts[rank];
  for (const auto& entry : layout.body->entries) {
    if (layout.body->tensors[entry.tensor].fqn == fqn) return held(*layout.body, entry, layout.coordinates);
  }
  FAIL("rank " << rank << " does not hold " << fqn);
  return {};
}

}  // namespace

TEST_CASE("every layout covers every tensor exactly") {
  const auto layout =
      GENERATE(as<const char*>{}, "dp=1", "dp=3", "tp=8", "tp=2,dp=2", "tp=2,dp=2,zero=1", "pp=8", "pp=3,dp=2,zero=1",
               "fsdp=5", "fsdp=7,zero=1", "tp=4,fsdp=3,zero=1", "cp=2,dp=2,zero=1", "tp=2,cp=2,fsdp=2,dp=2,pp=2,zero=1",
               "dp=4,ep=2", "tp=8,dp=4,ep=4,zero=1", "dp=6,ep=3,pp=2,zero=1", "fsdp=2,dp=4,ep=2,zero=1");
  for (const auto model : {"llama:tiny", "llama:tiny-moe"}) {
    INFO(model << " " << layout);
    const auto sections = sharded(model, layout);
    for (const auto& section : sections) {
      for (const auto& of_rank : section.placement.layouts) CHECK(check_layout(of_rank).has_value());
    }
    const auto planned = plan_save(sections);
    if (!planned) FAIL(planned.error().message);
    // bf16 parameters, and three fp32 states of each.
    CHECK(planned->balance.unique_bytes == parameters(model_named(model).value()) * (2 + 3 * 4));
  }
}

TEST_CASE("ranks that differ only in coordinates share a body") {
  CHECK(distinct_bodies(sharded("llama:405B", "fsdp=64")[0].placement) == 1);
  CHECK(distinct_bodies(sharded("llama:8B", "tp=8,dp=4,pp=4")[1].placement) == 4);
  CHECK(distinct_bodies(sharded("llama:8B", "tp=8,dp=4,pp=4,zero=1")[1].placement) == 16);
}

TEST_CASE("tensor parallelism cuts as Megatron does") {
  const auto model = sharded("llama:tiny", "tp=8")[0];
  CHECK(held_by(model, 1, "model.layers.0.self_attn.q_proj.weight").box == Box{{16, 0}, {16, 128}});
  CHECK(held_by(model, 1, "model.layers.0.self_attn.o_proj.weight").box == Box{{0, 16}, {128, 16}});
  CHECK(held_by(model, 1, "model.layers.0.mlp.down_proj.weight").box == Box{{0, 43}, {128, 43}});
  CHECK(held_by(model, 7, "model.norm.weight").box == Box{{0}, {128}});
  CHECK(held_by(model, 7, "lm_head.weight").box == Box{{882, 0}, {121, 128}});
  // Eight ranks, four heads: two ranks hold each.
  CHECK(held_by(model, 2, "model.layers.0.self_attn.k_proj.weight").box == Box{{16, 0}, {16, 128}});
  CHECK(held_by(model, 3, "model.layers.0.self_attn.k_proj.weight").box == Box{{16, 0}, {16, 128}});
}

TEST_CASE("experts are spread over groups of data parallel ranks") {
  const auto model = sharded("llama:tiny-moe", "tp=2,dp=4,ep=2")[0];
  const std::string gate = "model.layers.3.mlp.experts.gate_proj";
  CHECK(held_by(model, 0, gate).box == Box{{0, 0, 0}, {4, 44, 64}});
  CHECK(held_by(model, 3, gate).box == Box{{4, 44, 0}, {4, 44, 64}});
  CHECK(held_by(model, 4, gate).box == Box{{0, 0, 0}, {4, 44, 64}});
  CHECK(held_by(model, 3, "model.layers.3.mlp.experts.down_proj").box == Box{{4, 0, 44}, {4, 64, 44}});
}

TEST_CASE("zero cuts optimizer state into equal flat shares that cross parameters") {
  const auto sections = sharded("llama:tiny", "tp=2,dp=3,zero=1");
  std::map<std::uint32_t, std::uint64_t> elements_of_rank;
  bool crosses = false;
  for (std::uint32_t rank = 0; rank < 6; ++rank) {
    const auto& layout = sections[1].placement.layouts[rank];
    for (const auto& entry : layout.body->entries) {
      REQUIRE(entry.range.has_value());
      elements_of_rank[rank] += entry.range->end - entry.range->begin;
      crosses = crosses || entry.range->begin % 128 != 0;
    }
  }
  CHECK(crosses);
  for (const auto& [rank, count] : elements_of_rank) {
    INFO("rank " << rank);
    CHECK(count <= elements_of_rank[0]);
    CHECK(count * 100 >= elements_of_rank[0] * 99);
  }
}

TEST_CASE("fsdp cuts along the first dimension in ceil sized chunks, the last ones smaller or empty") {
  const auto model = sharded("llama:tiny", "fsdp=7")[0];
  CHECK(held_by(model, 0, "model.layers.0.mlp.gate_proj.weight").box == Box{{0, 0}, {50, 128}});
  CHECK(held_by(model, 6, "model.layers.0.mlp.gate_proj.weight").box == Box{{300, 0}, {44, 128}});
  CHECK(held_by(model, 6, "model.norm.weight").box == Box{{114}, {14}});
}

TEST_CASE("scalars and tensors without elements are held in every layout") {
  const auto model = model_of_tensors("odd", {{"none", DType::f16, {0, 4}},
                                              {"layers.0.count", DType::i64, {}},
                                              {"layers.0.w", DType::f32, {3, 5}},
                                              {"layers.1.flag", DType::boolean, {3}}});
  for (const auto layout : {"dp=1", "tp=4", "dp=3,zero=1", "fsdp=5", "tp=2,fsdp=2,dp=2,zero=1", "pp=2,dp=2,zero=1"}) {
    INFO(layout);
    const auto planned = plan_save(shard(model, parse_parallel(layout).value(), Optimizer::adam).value());
    if (!planned) FAIL(planned.error().message);
    REQUIRE(planned->plan->sections.size() == 2);
    CHECK(planned->plan->sections[0].tensors.size() == 4);
    CHECK(planned->plan->sections[1].tensors.size() == 12);
    CHECK(planned->balance.unique_bytes == (8 + 60 + 3) + 12 * (1 + 15 + 3));
  }
}
