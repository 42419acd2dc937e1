#pragma once

#include "trireme/core/export.hpp"
#include "trireme/files/location.hpp"
#include "trireme/nn/weights/weights.hpp"

namespace trireme TRIREME_EXPORT {
namespace models {

// Loads float32, bfloat16 or float16 weights into a model. path: a folder as Hugging Face transformers writes it, or one
// safetensors file with the same tensor names. Missing or unexpected tensors are an Error that lists them; in a pipeline the
// list covers all stages. All ranks of a divided model call load_pretrained(); each rank reads the tensors of which it holds a
// part, one tensor at a time. Weights of a model without a head, such as BertModel or ViTModel, are read too: their names lack
// the prefix, and the head may be missing.
template <typename Net>
requires requires(const Net& model) { model.options(); }
nn::LoadedWeights load_pretrained(Net& model, const Location& path, const nn::LoadOptions& load = {}) {
  return load_pretrained(model.model(), model.options(), path, load);
}

}  // namespace models
}  // namespace trireme
