#pragma once

#include "trireme/core/dtype.hpp"
#include "trireme/ops/elementwise/cast.hpp"

namespace trireme::ops::cuda {

// cuBLASLt only adds a bias of the result's type, so for a half type a bias of floats is rounded first.
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
