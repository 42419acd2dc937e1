#pragma once

#include <cstdint>
#include <type_traits>

#include "trireme/core/export.hpp"
#include "trireme/tensor/tensor.hpp"

namespace trireme TRIREME_EXPORT {
namespace data {

// Copies a tensor from a loader to the device D; an undefined tensor stays undefined. On the CPU nothing is copied.
template <typename D, typename T>
Tensor<T, D> on_device(const Tensor<T>& loaded) {
  if constexpr (std::is_same_v<D, Cpu>) {
    return loaded;
  } else {
    return loaded.defined() ? loaded.template to<D>() : Tensor<T, D>();
  }
}

// Bytes of the elements; 0 for an undefined tensor.
template <typename T>
std::int64_t bytes_of(const Tensor<T>& tensor) {
  return tensor.defined() ? tensor.numel() * static_cast<std::int64_t>(sizeof(T)) : 0;
}

// Brings a loader's batch to the device D by on_device<D>(batch), found in data or in the batch's own namespace. Returns the
// batch itself on the CPU, or if it has no on_device().
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
