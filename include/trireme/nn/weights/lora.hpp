#pragma once

#include <string_view>

#include "trireme/autograd/model.hpp"
#include "trireme/core/export.hpp"
#include "trireme/tensor/tensor.hpp"

// Models whose ModelContext has LoraOptions, as a whole.
namespace trireme TRIREME_EXPORT {
namespace nn {

// Adds what the adapters add to the weights, and passes the adapters over from then on: the model computes the same, as quickly
// as one without. It can't be trained further, nor its adapters saved. An Error where there are none.
void merge_adapter(Model& model);

// Whether a parameter of this name is an adapter's A or B.
bool is_of_adapter(std::string_view parameter);

// A parameter's values here, with what an adapter adds to them. T: the element type of the model's values.
template <typename T>
TRIREME_EXPORT Tensor<T> merged_values(Model& model, int index);

}  // namespace nn
}  // namespace trireme
