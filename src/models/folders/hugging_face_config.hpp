#pragma once

#include <nlohmann/json.hpp>

#include "trireme/models/architectures/llama.hpp"
#include "trireme/nn/weights/weights_format.hpp"

namespace trireme::models {

inline constexpr const char* llama_prefix = "model.";  // missing in a LlamaModel

// The output layer of a tied model.
inline nn::RepeatedTensor llama_head() { return {.name = "lm_head.weight", .of = "model.embed_tokens.weight"}; }

// The same options, using only `window` if all layers have the window or none has.
LlamaOptions with_plain_windows(LlamaOptions options);

// The config.json of these options, without the numbers of special tokens; an Error if transformers has no such model.
nlohmann::ordered_json config_of(const LlamaOptions& options, DType dtype);

}  // namespace trireme::models
