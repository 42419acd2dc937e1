#pragma once

#include <string>
#include <vector>

#include "trireme/autograd/model.hpp"
#include "trireme/core/export.hpp"
#include "trireme/files/location.hpp"
#include "trireme/files/safetensors.hpp"

// Weights of any model as safetensors: the names and shapes of the parameters and buffers, as a torch state dict. float32 is
// written, bfloat16 and float16 are read too.
namespace trireme TRIREME_EXPORT {
namespace nn {

struct LoadOptions {
  // Tensors that the file lacks or has in another shape keep their values, and those that the model lacks are left out: for a
  // new head.
  bool allow_missing = false;
};

// What did not fit, by name; nothing without LoadOptions::allow_missing.
struct LoadedWeights {
  std::vector<std::string> missing = {};     // in the file
  std::vector<std::string> unexpected = {};  // in the model
};

// Fills the model's store. A missing or unknown tensor or another shape is an Error that names it, and changes nothing.
// T: the element type of the model's values. All ranks of a divided model call this.
template <typename T>
TRIREME_EXPORT void load_weights(Model& model, const Location& path);

// All ranks of a divided model call this. The first one writes the file, tensor by tensor, as the others send theirs: it has
// the same bytes wherever they lie. `metadata`: what the file keeps beside them, as a vocabulary (data/text/vocabulary.hpp).
template <typename T>
TRIREME_EXPORT void save_weights(Model& model, const Location& path, const SafetensorsMetadata& metadata = {});

// One of several models in a file, as the two of a GAN: its names there begin with the prefix.
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
