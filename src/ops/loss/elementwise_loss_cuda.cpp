#include "ops/loss/elementwise_loss_cuda.hpp"

#include "device/cuda/check.hpp"
#include "device/cuda/stream.hpp"
#include "ops/loss/elementwise_loss_on.hpp"
#include "ops/reduce/reduce_cuda.hpp"
#include "precision/instantiate.hpp"

namespace trireme::ops {

using device::check_cuda;
using device::native_stream;

template <>
template <typename T>
Scalar<double, Cuda> ElementwiseLosses<Cuda>::sum(const ElementwiseLossOf<Accumulate<T>>& loss, std::int64_t count, const T* x,
                                                  const Accumulate<T>* target) {
  const Tensor<double, Cuda> sums({cuda::num_sum_parts(count)});
  const Tensor<double, Cuda> total({1});
  check_cuda(cuda::elementwise_loss(loss, count, x, target, sums.data(), total.data(), native_stream()), "elementwise_loss");
  return Scalar<double, Cuda>(total);
}

template <>
template <typename T>
void ElementwiseLosses<Cuda>::backward(const ElementwiseLossOf<Accumulate<T>>& loss, std::int64_t count, const T* x,
                                       const Accumulate<T>* target, const ScalarArgument<Accumulate<T>>& scale, T* dx,
                                       bool accumulate) {
  check_cuda(cuda::elementwise_loss_backward(loss, count, x, target, scale, dx, accumulate, native_stream()),
             "elementwise_loss_backward");
}

TRIREME_INSTANTIATE(FLOATS, elementwise_loss, Cuda)
TRIREME_INSTANTIATE(FLOATS, elementwise_loss_backward, Cuda)

}  // namespace trireme::ops
