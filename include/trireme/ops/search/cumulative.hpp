#pragma once

#include "trireme/core/export.hpp"
#include "trireme/ops/reduce/reductions.hpp"
#include "trireme/tensor/tensor.hpp"

// Cumulative sums and products along one dim:
//
//   const auto x = Tensor<float>::from({4}, {1, 2, 3, 4});
//   cumsum(x, 0);   // {1, 3, 6, 10}
//   cumprod(x, 0);  // {1, 2, 6, 24}
//
// Floats of any kind are added and multiplied in double, integers in std::int64_t.
namespace trireme TRIREME_EXPORT {

// T: float, double, bfloat16, float16, std::int32_t, std::int64_t.
template <typename T, typename D>
TRIREME_EXPORT Tensor<SumOf<T>, D> cumsum(const Tensor<T, D>& x, int dim);

// T: float, double, bfloat16, float16.
template <typename T, typename D>
TRIREME_EXPORT Tensor<T, D> cumprod(const Tensor<T, D>& x, int dim);

namespace ops {

enum class Cumulative : std::uint8_t { sum, product };

// y has the shape of x. `backwards` sums or multiplies from each element to the end of the dim.
template <typename T, typename D>
TRIREME_EXPORT void cumulate(Cumulative kind, const Tensor<T, D>& x, int dim, bool backwards, Tensor<SumOf<T>, D>& y,
                             bool accumulate = false);

// The gradient is also correct if elements of x are 0.
template <typename T, typename D>
TRIREME_EXPORT void cumprod_backward(const Tensor<T, D>& x, int dim, const Tensor<T, D>& dy, Tensor<T, D>& dx, bool accumulate);

}  // namespace ops
}  // namespace trireme
