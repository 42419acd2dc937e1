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

}  // namespace data
}  // namespace trireme
