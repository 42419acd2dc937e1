#pragma once

#include <type_traits>

#include "trireme/tensor/tensor.hpp"

// What a loader gives, where the model computes.
template <typename D, typename T>
trireme::Tensor<T, D> on_device(const trireme::Tensor<T>& loaded) {
  if constexpr (std::is_same_v<D, trireme::Cpu>) {
    return loaded;
  } else {
    return loaded.template to<D>();
  }
}
