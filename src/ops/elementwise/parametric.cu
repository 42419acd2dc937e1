#include "ops/base/map.cuh"
#include "ops/elementwise/elementwise_body.hpp"
#include "ops/elementwise/parametric_cuda.hpp"
#include "precision/instantiate.hpp"

namespace trireme::ops::cuda {

template <typename T>
cudaError_t leaky_relu(std::int64_t count, const T* x, Accumulate<T> slope, T* y, cudaStream_t stream) {
  return map_elements(count, y, false, stream, Value{math::LeakyRelu<Accumulate<T>>{slope}}, x);
}

template <typename T>
cudaError_t leaky_relu_backward(std::int64_t count, const T* x, Accumulate<T> slope, const T* dy, T* dx, bool accumulate,
                                cudaStream_t stream) {
  return map_elements(count, dx, accumulate, stream, Derivative{math::LeakyRelu<Accumulate<T>>{slope}}, x, dy);
}

template <typename T>
cudaError_t softplus(std::int64_t count, const T* x, Accumulate<T> beta, Accumulate<T> threshold, T* y, cudaStream_t stream) {
  return map_elements(count, y, false, stream, Value{math::Softplus<Accumulate<T>>{beta, threshold}}, x);
}

template <typename T>
cudaError_t softplus_backward(std::int64_t count, const T* x, Accumulate<T> beta, Accumulate<T> threshold, const T* dy, T* dx,
                              bool accumulate, cudaStream_t stream) {
  return map_elements(count, dx, accumulate, stream, Derivative{math::Softplus<Accumulate<T>>{beta, threshold}}, x, dy);
}

TRIREME_INSTANTIATE(FLOATS, leaky_relu)
TRIREME_INSTANTIATE(FLOATS, leaky_relu_backward)
TRIREME_INSTANTIATE(FLOATS, softplus)
TRIREME_INSTANTIATE(FLOATS, softplus_backward)

}  // namespace trireme::ops::cuda
