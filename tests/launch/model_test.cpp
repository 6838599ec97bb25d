#include "launch/model.h"

#include <algorithm>

#include "tests/support/catch.h"

using namespace vckpt;
using namespace vckpt::launch;

TEST_CASE("the presets have as many parameters as the published models") {
  CHECK(parameters(model_named("llama:8B").value()) == 8'030'261'248);
  CHECK(parameters(model_named("llama:70B").value()) == 70'553'706'496);
  CHECK(parameters(model_named("llama:405B").value()) == 405'853'388'800);
}

TEST_CASE("a model that is not known is refused with those that are") {
  const auto unknown = model_named("llama:7B");
  REQUIRE(!unknown.has_value());
  CHECK(unknown.error().code == Code::invalid);
  CHECK(unknown.error().message.find("llama:7B") != std::string::npos);
  CHECK(unknown.error().message.find("llama:405B") != std::string::npos);
}

namespace {

std::vector<std::uint32_t> layers_per_stage(const Model& model, std::uint32_t pp) {
  std::vector<std::uint32_t> layers(pp);
  for (std::uint32_t unit = 1; unit <= model.layers; ++unit) ++layers[stage_of(model, unit, pp)];
  return layers;
}

}  // namespace

TEST_CASE("the stages of 405B at pp 16 hold 7, 8, ..., 8, 7 layers") {
  auto expected = std::vector<std::uint32_t>(16, 8);
  expected.front() = expected.back() = 7;
  CHECK(layers_per_stage(model_named("llama:405B").value(), 16) == expected);
}

TEST_CASE("stages ascend, differ by at most two layers, and none is without a layer") {
  for (const auto name : {"llama:tiny", "llama:8B", "llama:70B", "llama:405B"}) {
    const auto model = model_named(name).value();
    for (std::uint32_t pp = 1; pp <= model.layers; ++pp) {
      const auto layers = layers_per_stage(model, pp);
      const auto [least, most] = std::minmax_element(layers.begin(), layers.end());
      INFO(name << " pp=" << pp);
      CHECK(*least >= 1);
      CHECK(*most - *least <= 2);
      CHECK(stage_of(model, 0, pp) == 0);
      CHECK(stage_of(model, model.layers + 1, pp) == pp - 1);
      std::uint32_t stage = 0;
      for (std::uint32_t unit = 0; unit <= model.layers + 1; ++unit) {
        CHECK(stage_of(model, unit, pp) >= stage);
        stage = stage_of(model, unit, pp);
      }
    }
  }
}

TEST_CASE("tensors of a file are cut by their shapes and names, and staged by the layer in their names") {
  const auto model = model_of_tensors("m", {{"lm_head.weight", DType::f32, {10, 4}},
                                            {"model.layers.1.mlp.down_proj.weight", DType::f32, {4, 8}},
                                            {"model.embed_tokens.weight", DType::f32, {10, 4}},
                                            {"model.layers.0.mlp.up_proj.weight", DType::f32, {8, 4}},
                                            {"model.layers.0.norm.weight", DType::f32, {4}},
                                            {"model.layers.1.packed", DType::f4, {8, 4}}});
  CHECK(model.layers == 2);
  const auto find = [&](const char* fqn) {
    return *std::find_if(model.tensors.begin(), model.tensors.end(),
                         [&](const ModelTensor& tensor) { return tensor.spec.fqn == fqn; });
  };
  CHECK(find("model.embed_tokens.weight").unit == 0);
  CHECK(find("model.layers.0.mlp.up_proj.weight").unit == 1);
  CHECK(find("model.layers.0.mlp.up_proj.weight").split == Split::column);
  CHECK(find("model.layers.1.mlp.down_proj.weight").unit == 2);
  CHECK(find("model.layers.1.mlp.down_proj.weight").split == Split::row);
  CHECK(find("model.layers.0.norm.weight").split == Split::none);
  CHECK(find("model.layers.1.packed").split == Split::none);
  CHECK(find("lm_head.weight").unit == 3);
}

TEST_CASE("a layout that the model does not bear is refused") {
  const auto model = model_named("llama:tiny").value();
  const auto refused = [&](const char* layout, const char* noun) {
    const auto fits = check_fits(model, parse_parallel(layout).value());
    REQUIRE(!fits.has_value());
    CHECK(fits.error().code == Code::invalid);
    CHECK(fits.error().message.find(noun) != std::string::npos);
  };
  refused("tp=3", "tp=3 does not divide the 8 heads");
  refused("pp=9", "pp=9 is more than the 8 layers");
  CHECK(check_fits(model, parse_parallel("tp=8,pp=8,dp=3").value()).has_value());
}
