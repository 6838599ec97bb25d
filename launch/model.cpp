#include "launch/model.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>

namespace vckpt::launch {

namespace {

struct Shape {
  std::string_view name;
  std::uint32_t layers;
  std::uint64_t hidden;
  std::uint64_t feed_forward;
  std::uint32_t heads;
  std::uint32_t key_value_heads;
  std::uint64_t vocabulary;
  std::uint64_t experts;  // 0: dense
};

// Llama 3: "The Llama 3 Herd of Models", table 3. The tiny ones have sizes that few layouts divide.
constexpr std::array<Shape, 5> shapes = {{{"llama:8B", 32, 4096, 14336, 32, 8, 128256, 0},
                                          {"llama:70B", 80, 8192, 28672, 64, 8, 128256, 0},
                                          {"llama:405B", 126, 16384, 53248, 128, 8, 128256, 0},
                                          {"llama:tiny", 8, 128, 344, 8, 4, 1003, 0},
                                          {"llama:tiny-moe", 8, 64, 88, 8, 4, 509, 8}}};

void add_feed_forward(Model& model, const Shape& shape, const std::string& prefix, std::uint32_t unit) {
  const auto add = [&](const std::string& name, Dims dims, Split split) {
    model.tensors.push_back({{prefix + name, DType::bf16, std::move(dims)}, split, unit});
  };
  if (shape.experts == 0) {
    add("mlp.gate_proj.weight", {shape.feed_forward, shape.hidden}, Split::column);
    add("mlp.up_proj.weight", {shape.feed_forward, shape.hidden}, Split::column);
    add("mlp.down_proj.weight", {shape.hidden, shape.feed_forward}, Split::row);
    return;
  }
  add("mlp.router.weight", {shape.experts, shape.hidden}, Split::none);
  add("mlp.experts.gate_proj", {shape.experts, shape.feed_forward, shape.hidden}, Split::expert_column);
  add("mlp.experts.up_proj", {shape.experts, shape.feed_forward, shape.hidden}, Split::expert_column);
  add("mlp.experts.down_proj", {shape.experts, shape.hidden, shape.feed_forward}, Split::expert_row);
}

Model build(const Shape& shape) {
  Model model{std::string(shape.name), shape.layers, shape.heads, shape.key_value_heads, {}};
  const auto key_value = shape.hidden / shape.heads * shape.key_value_heads;
  const auto add = [&](const std::string& name, Dims dims, Split split, std::uint32_t unit) {
    model.tensors.push_back({{name, DType::bf16, std::move(dims)}, split, unit});
  };
  add("model.embed_tokens.weight", {shape.vocabulary, shape.hidden}, Split::column, 0);
  for (std::uint32_t layer = 0; layer < shape.layers; ++layer) {
    const auto prefix = "model.layers." + std::to_string(layer) + ".";
    const auto unit = layer + 1;
    add(prefix + "self_attn.q_proj.weight", {shape.hidden, shape.hidden}, Split::column, unit);
    add(prefix + "self_attn.k_proj.weight", {key_value, shape.hidden}, Split::key_value, unit);
    add(prefix + "self_attn.v_proj.weight", {key_value, shape.hidden}, Split::key_value, unit);
    add(prefix + "self_attn.o_proj.weight", {shape.hidden, shape.hidden}, Split::row, unit);
    add_feed_forward(model, shape, prefix, unit);
    add(prefix + "input_layernorm.weight", {shape.hidden}, Split::none, unit);
    add(prefix + "post_attention_layernorm.weight", {shape.hidden}, Split::none, unit);
  }
  add("model.norm.weight", {shape.hidden}, Split::none, shape.layers + 1);
  add("lm_head.weight", {shape.vocabulary, shape.hidden}, Split::column, shape.layers + 1);
  return model;
}

// The number that is a whole part of the name between dots: the first one.
std::optional<std::uint32_t> layer_of(std::string_view fqn) {
  for (std::size_t begin = 0; begin <= fqn.size();) {
    const auto end = std::min(fqn.find('.', begin), fqn.size());
    std::uint32_t layer = 0;
    const auto [stop, error] = std::from_chars(fqn.data() + begin, fqn.data() + end, layer);
    if (error == std::errc() && stop == fqn.data() + end && layer < axis_max) return layer;
    begin = end + 1;
  }
  return std::nullopt;
}

bool row_parallel(std::string_view fqn) {
  constexpr std::array<std::string_view, 8> endings = {"o_proj.weight", "down_proj.weight", "output.dense.weight",
                                                       "wo.weight",     "w2.weight",        "c_proj.weight",
                                                       "fc2.weight",    "out_proj.weight"};
  return std::any_of(endings.begin(), endings.end(), [&](auto ending) { return fqn.ends_with(ending); });
}

}  // namespace

std::string known_models() {
  std::string names;
  for (const auto& shape : shapes) names += (names.empty() ? "" : ", ") + std::string(shape.name);
  return names;
}

Result<Model> model_named(std::string_view name) {
  for (const auto& shape : shapes) {
    if (shape.name == name) return build(shape);
  }
  return invalid("model '" + std::string(name) + "': no such model; there are " + known_models() +
                 ", or give a .safetensors file");
}

Model model_of_tensors(std::string name, const std::vector<TensorSpec>& tensors) {
  Model model;
  model.name = std::move(name);
  for (const auto& spec : tensors) {
    if (const auto layer = layer_of(spec.fqn)) model.layers = std::max(model.layers, *layer + 1);
  }
  for (const auto& spec : tensors) {
    ModelTensor tensor{spec, Split::none, 0};
    if (const auto layer = layer_of(spec.fqn)) {
      tensor.unit = *layer + 1;
    } else if (spec.fqn.find("embed") == std::string::npos) {
      tensor.unit = model.layers + 1;
    }
    if (spec.shape.size() >= 2 && bits(spec.dtype) % 8 == 0) {
      tensor.split = row_parallel(spec.fqn) ? Split::row : Split::column;
    }
    model.tensors.push_back(std::move(tensor));
  }
  std::stable_sort(model.tensors.begin(), model.tensors.end(),
                   [](const ModelTensor& a, const ModelTensor& b) { return a.unit < b.unit; });
  return model;
}

std::uint64_t parameters(const Model& model) {
  std::uint64_t count = 0;
  for (const auto& tensor : model.tensors) count += elements(whole(tensor.spec.shape));
  return count;
}

Result<void> check_fits(const Model& model, const Parallel& parallel) {
  const auto layout = "layout " + to_string(parallel) + ": ";
  if (model.heads != 0 && model.heads % parallel.tp != 0) {
    return invalid(layout + "tp=" + std::to_string(parallel.tp) + " does not divide the " +
                   std::to_string(model.heads) + " heads of " + model.name);
  }
  if (parallel.pp > 1 && parallel.pp > model.layers) {
    return invalid(layout + "pp=" + std::to_string(parallel.pp) + " is more than the " + std::to_string(model.layers) +
                   " layers of " + model.name);
  }
  return {};
}

std::uint32_t stage_of(const Model& model, std::uint32_t unit, std::uint32_t pp) {
  if (pp == 1) return 0;
  const auto units = model.layers + 2;
  if (units % pp == 0) return unit / (units / pp);
  if (unit == 0) return 0;
  if (unit == model.layers + 1) return pp - 1;
  // Stage s holds layers [s * layers / pp, (s + 1) * layers / pp).
  return static_cast<std::uint32_t>(((std::uint64_t{unit - 1} + 1) * pp - 1) / model.layers);
}

}  // namespace vckpt::launch
