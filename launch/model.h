// Models as lists of tensors: the published Llama 3 shapes, small synthetic ones, and what stands in a safetensors
// file. How their tensors are cut by tensor, expert and pipeline parallelism is said here; for which ranks, in
// sharding.h.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "launch/parallel.h"
#include "schema/layout.h"
#include "schema/result.h"

namespace vckpt::launch {

// How tensor (and expert) parallelism cuts a tensor, as Megatron does it.
enum class Split : std::uint8_t {
  none,           // replicated: norms, biases
  column,         // along dimension 0: query, gate, up, embedding and head (along the vocabulary)
  row,            // along dimension 1: attention output, down
  key_value,      // along dimension 0 by key-value heads; with more ranks than heads each head is held by several
  expert_column,  // experts along dimension 0 over ep, then dimension 1 over tp
  expert_row,     // experts along dimension 0 over ep, then dimension 2 over tp
};

struct ModelTensor {
  TensorSpec spec;
  Split split = Split::none;
  std::uint32_t unit = 0;  // of the pipeline: 0 before the layers, i + 1 layer i, layers + 1 behind them
};

struct Model {
  std::string name;
  std::uint32_t layers = 0;
  std::uint32_t heads = 0;            // 0: not known (a file)
  std::uint32_t key_value_heads = 0;  // 0: not known
  std::vector<ModelTensor> tensors;   // by unit
};

// Names that model_named knows, for messages.
std::string known_models();

// `llama:8B`, `llama:70B`, `llama:405B`, `llama:tiny`, `llama:tiny-moe`. invalid: any other name, naming the known
// ones.
Result<Model> model_named(std::string_view name);

// A model from the tensors of a file. A number that is a whole part of a name is a layer's; names without one belong
// before the layers when they say `embed`, else behind them. Tensors of two and more dimensions are cut along dimension
// 0, those whose names are known to be row-parallel along dimension 1; all others, and types below one byte, are
// replicated.
Model model_of_tensors(std::string name, const std::vector<TensorSpec>& tensors);

std::uint64_t parameters(const Model& model);

// invalid: heads that tp does not divide, more stages than layers.
Result<void> check_fits(const Model& model, const Parallel& parallel);

// The pipeline stage of a unit. When layers + 2 divides by pp, embedding and head count as a layer each, as in Llama
// 3's own training (405B at pp=16: 7, 8, ..., 8, 7 layers); else the layers are spread as evenly as they go.
std::uint32_t stage_of(const Model& model, std::uint32_t unit, std::uint32_t pp);

}  // namespace vckpt::launch
