#pragma once

#include "trireme/core/export.hpp"
#include "trireme/files/location.hpp"
#include "trireme/nn/weights/weights.hpp"

namespace trireme TRIREME_EXPORT {
namespace models {

// Fills a model with float32, bfloat16 or float16 tensors. path: a folder as transformers writes it, or one safetensors file
// with the names that transformers gives such a model. A rank of a divided model reads the tensors that it has a part of, one
// after the other. Those that are missing or unexpected are an Error that lists them, in a pipeline those of all stages. All
// ranks of a divided model call it. Weights of the model without its head, as of a BertModel or ViTModel, whose names lack the
// prefix, are read too, where the head may be missing.
template <typename Net>
requires requires(const Net& model) { model.options(); }
nn::LoadedWeights load_pretrained(Net& model, const Location& path, const nn::LoadOptions& load = {}) {
  return load_pretrained(model.model(), model.options(), path, load);
}

}  // namespace models
}  // namespace trireme
