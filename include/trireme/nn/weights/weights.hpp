#pragma once

#include <string>
#include <vector>

#include "trireme/autograd/model.hpp"
#include "trireme/core/export.hpp"
#include "trireme/files/location.hpp"
#include "trireme/files/safetensors.hpp"

// Weights of any model as safetensors, with the names and shapes of parameters and buffers, like a torch state dict. Files are
// written in float32; bfloat16 and float16 can be read too.
namespace trireme TRIREME_EXPORT {
namespace nn {

struct LoadOptions {
  // For a new head. If true, parameters that the file lacks or holds with another shape keep their values, and tensors that the
  // model does not have are ignored.
  bool allow_missing = false;
};

// Names of tensors that were not loaded; always empty without LoadOptions::allow_missing.
struct LoadedWeights {
  std::vector<std::string> missing = {};     // in the model, not in the file
  std::vector<std::string> unexpected = {};  // in the file, not in the model
};

// Loads the weights into the model's store. A missing tensor, an unknown tensor or another shape is an Error that names the
// tensor; the store then does not change. T: the element type of the model's values. All ranks of a divided model call
// load_weights().
template <typename T>
TRIREME_EXPORT void load_weights(Model& model, const Location& path);

// All ranks of a divided model call save_weights(). The first rank writes the file, tensor by tensor; the other ranks send
// their tensors to the first rank. The file has the same bytes however the model is divided. `metadata`: text to save with the
// weights, such as a vocabulary (data/text/vocabulary.hpp).
template <typename T>
TRIREME_EXPORT void save_weights(Model& model, const Location& path, const SafetensorsMetadata& metadata = {});

// One of several models in a file, such as the two models of a GAN. The prefix is put before the model's names in the file.
struct PrefixedModel {
  std::string prefix;
  Model& model;
};

template <typename T>
TRIREME_EXPORT void load_weights(const std::vector<PrefixedModel>& models, const Location& path);

template <typename T>
TRIREME_EXPORT void save_weights(const std::vector<PrefixedModel>& models, const Location& path);

}  // namespace nn
}  // namespace trireme
