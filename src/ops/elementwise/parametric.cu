#include "ops/base/map.cuh"
#include "ops/elementwise/elementwise_body.hpp"
#include "ops/elementwise/parametric_cuda.hpp"

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

#define TRIREME_INSTANTIATE(T)                                                                                       \
  template cudaError_t leaky_relu(std::int64_t, const T*, Accumulate<T>, T*, cudaStream_t);                          \
  template cudaError_t leaky_relu_backward(std::int64_t, const T*, Accumulate<T>, const T*, T*, bool, cudaStream_t); \
  template cudaError_t softplus(std::int64_t, const T*, Accumulate<T>, Accumulate<T>, T*, cudaStream_t);             \
  template cudaError_t softplus_backward(std::int64_t, const T*, Accumulate<T>, Accumulate<T>, const T*, T*, bool, cudaStream_t)
TRIREME_INSTANTIATE(float);
TRIREME_INSTANTIATE(double);
TRIREME_INSTANTIATE(bfloat16);
TRIREME_INSTANTIATE(float16);

}  // namespace trireme::ops::cuda
