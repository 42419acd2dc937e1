#include "device/cuda/launch.cuh"
#include "ops/pointwise/pointwise_cuda.hpp"
#include "ops/pointwise/unary_body.hpp"

namespace trireme::ops::cuda {

template <typename T>
cudaError_t unary(Unary kind, Accumulate<T> first, Accumulate<T> second, std::int64_t count, const T* x, T* y,
                  cudaStream_t stream) {
  return device::for_each_index(count, stream, UnaryElement<T>{kind, first, second, x, y});
}

template <typename T>
cudaError_t unary_slope(Unary kind, Accumulate<T> first, Accumulate<T> second, std::int64_t count, const T* x, const T* dy,
                        T* dx, bool accumulate, cudaStream_t stream) {
  return device::for_each_index(count, stream, UnarySlopeElement<T>{kind, first, second, x, dy, dx, accumulate});
}

template <typename T>
cudaError_t test(FloatTest kind, std::int64_t count, const T* x, bool* mask, cudaStream_t stream) {
  return device::for_each_index(count, stream, TestElement<T>{kind, x, mask});
}

#define TRIREME_INSTANTIATE_UNARY(T) \
  template cudaError_t unary(Unary, Accumulate<T>, Accumulate<T>, std::int64_t, const T*, T*, cudaStream_t)
#define TRIREME_INSTANTIATE(T)                                                                                      \
  TRIREME_INSTANTIATE_UNARY(T);                                                                                     \
  template cudaError_t unary_slope(Unary, Accumulate<T>, Accumulate<T>, std::int64_t, const T*, const T*, T*, bool, \
                                   cudaStream_t);                                                                   \
  template cudaError_t test(FloatTest, std::int64_t, const T*, bool*, cudaStream_t)
TRIREME_INSTANTIATE(float);
TRIREME_INSTANTIATE(double);
TRIREME_INSTANTIATE(bfloat16);
TRIREME_INSTANTIATE(float16);
TRIREME_INSTANTIATE_UNARY(std::int32_t);
TRIREME_INSTANTIATE_UNARY(std::int64_t);

}  // namespace trireme::ops::cuda
