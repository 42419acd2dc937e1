#include "device/cuda/launch.cuh"
#include "ops/pointwise/pointwise_cuda.hpp"
#include "ops/pointwise/unary_body.hpp"
#include "precision/instantiate.hpp"

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

TRIREME_INSTANTIATE(NUMBERS, unary)
TRIREME_INSTANTIATE(FLOATS, unary_slope)
TRIREME_INSTANTIATE(FLOATS, test)

}  // namespace trireme::ops::cuda
