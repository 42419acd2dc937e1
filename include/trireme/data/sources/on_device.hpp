#pragma once

#include <type_traits>

#include "trireme/core/export.hpp"
#include "trireme/tensor/tensor.hpp"

namespace trireme TRIREME_EXPORT {
namespace data {

// What a loader gives, where the model computes; an undefined tensor stays one.
template <typename D, typename T>
Tensor<T, D> on_device(const Tensor<T>& loaded) {
  if constexpr (std::is_same_v<D, Cpu>) {
    return loaded;
  } else {
    return loaded.defined() ? loaded.template to<D>() : Tensor<T, D>();
  }
}

// A batch as a loader gives it, where a model on D computes: on the CPU itself, on a GPU what on_device<D>(batch) makes of it,
// that of data or of the batch's own namespace. A batch without one stays as it is.
template <typename D, typename Batch>
decltype(auto) brought_to(const Batch& batch) {
  if constexpr (!std::is_same_v<D, Cpu> && requires { on_device<D>(batch); }) {
    return on_device<D>(batch);
  } else {
    return batch;
  }
}

}  // namespace data
}  // namespace trireme
