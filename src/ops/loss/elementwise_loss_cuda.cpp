#include "ops/loss/elementwise_loss_cuda.hpp"

#include "device/cuda/check.hpp"
#include "device/cuda/stream.hpp"
#include "ops/loss/elementwise_loss_on.hpp"
#include "ops/reduce/reduce_cuda.hpp"

namespace trireme::ops {

using device::check_cuda;
using device::native_stream;

template <>
template <typename T>
Scalar<double, Cuda> ElementwiseLosses<Cuda>::sum(ElementwiseLoss kind, std::int64_t count, const T* x,
                                                  const Accumulate<T>* target, Accumulate<T> positive_weight) {
  const Tensor<double, Cuda> sums({cuda::num_sum_parts(count)});
  const Tensor<double, Cuda> total({1});
  check_cuda(cuda::elementwise_loss(kind, count, x, target, positive_weight, sums.data(), total.data(), native_stream()),
             "elementwise_loss");
  return Scalar<double, Cuda>(total);
}

template <>
template <typename T>
void ElementwiseLosses<Cuda>::backward(ElementwiseLoss kind, std::int64_t count, const T* x, const Accumulate<T>* target,
                                       Accumulate<T> positive_weight, const ScalarArgument<Accumulate<T>>& scale, T* dx,
                                       bool accumulate) {
  check_cuda(cuda::elementwise_loss_backward(kind, count, x, target, positive_weight, scale, dx, accumulate, native_stream()),
             "elementwise_loss_backward");
}

TRIREME_INSTANTIATE_ELEMENTWISE_LOSS(float, Cuda);
TRIREME_INSTANTIATE_ELEMENTWISE_LOSS(double, Cuda);
TRIREME_INSTANTIATE_ELEMENTWISE_LOSS(bfloat16, Cuda);
TRIREME_INSTANTIATE_ELEMENTWISE_LOSS(float16, Cuda);

}  // namespace trireme::ops
