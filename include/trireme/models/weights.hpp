#pragma once

#include <string>

#include "trireme/autograd/flat_store.hpp"

// Weights of any model as safetensors: float32, the names and shapes of the parameters and buffers, as a torch state dict.
namespace trireme::models {

// Fills the store. A missing or unknown tensor or another shape is an Error that names it, and changes nothing.
// T: the store's element type.
template <typename T>
void load_weights(FlatStore& store, const std::string& path);

template <typename T>
void save_weights(FlatStore& store, const std::string& path);

}  // namespace trireme::models
