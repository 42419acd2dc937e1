#pragma once

#include "trireme/core/dtype.hpp"
#include "trireme/ops/elementwise/cast.hpp"

namespace trireme::ops::cuda {

// cuBLASLt adds a bias of the result's type only: one of floats is rounded to a half type first.
template <typename C>
Tensor<C, Cuda> bias_for(const Tensor<Accumulate<C>, Cuda>& bias) {
  if constexpr (std::is_same_v<C, Accumulate<C>>) {
    return bias;
  } else {
    if (!bias.defined()) return {};
    Tensor<C, Cuda> rounded(bias.shape());
    ops::cast(bias, rounded);
    return rounded;
  }
}

}  // namespace trireme::ops::cuda
