#include "ops/elementwise/parametric_cuda.hpp"

#include "device/cuda/check.hpp"
#include "device/cuda/stream.hpp"
#include "ops/elementwise/parametric_on.hpp"
#include "precision/instantiate.hpp"

namespace trireme::ops {

using device::check_cuda;
using device::native_stream;

template <>
template <typename T>
void Parametric<Cuda>::leaky_relu(std::int64_t count, const T* x, Accumulate<T> slope, T* y) {
  check_cuda(cuda::leaky_relu(count, x, slope, y, native_stream()), "leaky_relu");
}

template <>
template <typename T>
void Parametric<Cuda>::leaky_relu_backward(std::int64_t count, const T* x, Accumulate<T> slope, const T* dy, T* dx,
                                           bool accumulate) {
  check_cuda(cuda::leaky_relu_backward(count, x, slope, dy, dx, accumulate, native_stream()), "leaky_relu_backward");
}

template <>
template <typename T>
void Parametric<Cuda>::softplus(std::int64_t count, const T* x, Accumulate<T> beta, Accumulate<T> threshold, T* y) {
  check_cuda(cuda::softplus(count, x, beta, threshold, y, native_stream()), "softplus");
}

template <>
template <typename T>
void Parametric<Cuda>::softplus_backward(std::int64_t count, const T* x, Accumulate<T> beta, Accumulate<T> threshold,
                                         const T* dy, T* dx, bool accumulate) {
  check_cuda(cuda::softplus_backward(count, x, beta, threshold, dy, dx, accumulate, native_stream()), "softplus_backward");
}

TRIREME_INSTANTIATE(FLOATS, leaky_relu, Cuda)
TRIREME_INSTANTIATE(FLOATS, leaky_relu_backward, Cuda)
TRIREME_INSTANTIATE(FLOATS, softplus, Cuda)
TRIREME_INSTANTIATE(FLOATS, softplus_backward, Cuda)

}  // namespace trireme::ops
