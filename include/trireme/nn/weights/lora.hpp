#pragma once

#include <string_view>

#include "trireme/autograd/model.hpp"
#include "trireme/core/export.hpp"
#include "trireme/tensor/tensor.hpp"

// Functions for models with LoRA adapters, whose ModelContext has LoraOptions.
namespace trireme TRIREME_EXPORT {
namespace nn {

// Merges the adapters into the weights and skips the adapters from then on: the model computes the same results, as fast as a
// model without adapters. Afterwards the model can't be trained, and its adapters can't be saved. Throws Error if there are no
// adapters.
void merge_adapter(Model& model);

// Whether a parameter of this name is an adapter's A or B.
bool is_of_adapter(std::string_view parameter);

// The values of a parameter's part on this rank, with its adapter merged in. T: the element type of the model's values.
template <typename T>
TRIREME_EXPORT Tensor<T> merged_values(Model& model, int index);

}  // namespace nn
}  // namespace trireme
