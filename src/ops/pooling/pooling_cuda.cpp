#include "ops/pooling/pooling_cuda.hpp"

#include "device/cuda/check.hpp"
#include "device/cuda/stream.hpp"
#include "ops/pooling/pooling_on.hpp"
#include "precision/instantiate.hpp"

namespace trireme::ops {

using device::check_cuda;
using device::native_stream;

template <>
template <typename T>
void Pooling<Cuda>::max(const PoolWindows& windows, const Tensor<T, Cuda>& x, Tensor<T, Cuda>& y, PoolArgmax<Cuda>& argmax) {
  const PoolImages images{windows, x.dim(3)};
  check_cuda(cuda::max_pool(images, x.dim(0), x.data(), y.data(), argmax.data(), native_stream()), "max_pool2d");
}

template <>
template <typename T>
void Pooling<Cuda>::max_backward(const PoolWindows& windows, const Tensor<T, Cuda>& dy, const PoolArgmax<Cuda>& argmax,
                                 Tensor<T, Cuda>& dx, bool accumulate) {
  const PoolImages images{windows, dx.dim(3)};
  check_cuda(cuda::max_pool_backward(images, dx.dim(0), dy.data(), argmax.data(), dx.data(), accumulate, native_stream()),
             "max_pool2d_backward");
}

template <>
template <typename T>
void Pooling<Cuda>::average(const PoolWindows& windows, const Tensor<T, Cuda>& x, Tensor<T, Cuda>& y) {
  const PoolImages images{windows, x.dim(3)};
  check_cuda(cuda::average_pool(images, x.dim(0), x.data(), y.data(), native_stream()), "avg_pool2d");
}

template <>
template <typename T>
void Pooling<Cuda>::average_backward(const PoolWindows& windows, const Tensor<T, Cuda>& dy, Tensor<T, Cuda>& dx,
                                     bool accumulate) {
  const PoolImages images{windows, dx.dim(3)};
  check_cuda(cuda::average_pool_backward(images, dx.dim(0), dy.data(), dx.data(), accumulate, native_stream()),
             "avg_pool2d_backward");
}

TRIREME_INSTANTIATE(FLOATS, max_pool2d, Cuda)
TRIREME_INSTANTIATE(FLOATS, max_pool2d_backward, Cuda)
TRIREME_INSTANTIATE(FLOATS, avg_pool2d, Cuda)
TRIREME_INSTANTIATE(FLOATS, avg_pool2d_backward, Cuda)
TRIREME_INSTANTIATE(FLOATS, adaptive_max_pool2d, Cuda)
TRIREME_INSTANTIATE(FLOATS, adaptive_max_pool2d_backward, Cuda)
TRIREME_INSTANTIATE(FLOATS, adaptive_avg_pool2d, Cuda)
TRIREME_INSTANTIATE(FLOATS, adaptive_avg_pool2d_backward, Cuda)

}  // namespace trireme::ops
