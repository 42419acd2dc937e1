#include "trireme/models/folders/gpt2_safetensors.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "models/folders/gpt2_format.hpp"

namespace trireme::models {
namespace {

bool ends_with_any(std::string_view name, std::initializer_list<std::string_view> endings) {
  return std::any_of(endings.begin(), endings.end(), [name](std::string_view ending) { return name.ends_with(ending); });
}

// Tensors in files that are not parameters.
bool is_beside_gpt2(std::string_view name) { return ends_with_any(name, {".attn.bias", ".attn.masked_bias"}); }

}  // namespace

nn::WeightsFormat gpt2_format(DType dtype) {
  return {.stored_transposed = stored_transposed,
          .passed_over = is_beside_gpt2,
          .optional_prefix = "transformer.",
          .repeated = {{.name = "lm_head.weight", .of = "transformer.wte.weight"}},
          .dtype = dtype};
}

bool stored_transposed(std::string_view parameter) {
  return ends_with_any(parameter, {".c_attn.weight", ".c_proj.weight", ".c_fc.weight"});
}

GptOptions gpt2_options(const Location& path) {
  const SafetensorsFile file(path);
  const nn::WeightsFormat format = gpt2_format(DType::float32);
  const auto matrix = [&](const std::string& name) {
    const SafetensorsEntry& entry = nn::stored_tensor(file, name, format);
    if (entry.shape.size() == 2 && entry.shape[0] > 0 && entry.shape[1] > 0) return entry.shape;
    throw Error({.code = ErrorCode::invalid_argument,
                 .message = "a tensor of the file is not a matrix",
                 .name = entry.name,
                 .path = path.string(),
                 .had = entry.shape.str(),
                 .hint = "name a GPT-2 as transformers writes it"});
  };
  const Shape tokens = matrix("transformer.wte.weight");
  const std::int64_t width = tokens[1];
  const std::int64_t layers = std::max<std::int64_t>(
      1, std::ranges::count_if(file.tensors(), [](const auto& entry) { return entry.name.ends_with(".ln_1.weight"); }));
  // Checks a large tensor of each layer, so that a model of these sizes takes little more memory than the file has bytes.
  for (std::int64_t layer = 0; layer < layers; ++layer) {
    nn::require_fits(file, nn::stored_tensor(file, fmt::format("transformer.h.{}.mlp.c_fc.weight", layer), format),
                     {width, 4 * width});
  }
  return {.layers = static_cast<int>(layers),
          .heads = 1,
          .width = width,
          .block = matrix("transformer.wpe.weight")[0],
          .vocabulary = tokens[0]};
}

nn::LoadedWeights load_pretrained(Model& model, const GptOptions&, const Location& path, const nn::LoadOptions& load) {
  return nn::load_weights({{.prefix = "", .model = model}}, path, gpt2_format(DType::float32), load);
}

void save_gpt2(Model& model, const Location& path) {
  nn::save_weights({{.prefix = "", .model = model}}, path, gpt2_format(DType::float32));
}

}  // namespace trireme::models
