#pragma once

#include <algorithm>
#include <type_traits>

#include "trireme/core/export.hpp"
#include "trireme/tensor/tensor.hpp"

namespace trireme TRIREME_EXPORT {
namespace ops {

template <typename T, typename D>
void fill_elements(Tensor<T, D>& y, std::type_identity_t<T> value) {
  y.count_change();
  if constexpr (Tensor<T, D>::on_host) {
    std::fill_n(y.data(), y.numel(), value);
  } else {
    device::fill(D{}, y.data(), &value, sizeof(T), static_cast<std::size_t>(y.numel()));
  }
}

// Copies x to y, which has the same number of elements.
template <typename T, typename D>
void copy_elements(const Tensor<T, D>& x, Tensor<T, D>& y) {
  y.count_change();
  device::copy_bytes(D{}, y.data(), D{}, x.data(), x.span().size_bytes());
}

}  // namespace ops
}  // namespace trireme
