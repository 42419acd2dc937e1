#include "device/cuda/launch.cuh"
#include "ops/search/search_cuda.hpp"

namespace trireme::ops::cuda {

template <typename T>
cudaError_t first_extreme(const FirstExtreme<T>& body, cudaStream_t stream) {
  return device::for_each_index(body.sizes.results() * body.parts, stream, body);
}

template <typename T>
cudaError_t take(std::int64_t count, const Take<T>& body, cudaStream_t stream) {
  return device::for_each_index(count, stream, body);
}

template <typename T>
cudaError_t take_gradient(std::int64_t count, const TakeGradient<T>& body, cudaStream_t stream) {
  return device::for_each_index(count, stream, body);
}

#define TRIREME_INSTANTIATE(T)                                              \
  template cudaError_t first_extreme(const FirstExtreme<T>&, cudaStream_t); \
  template cudaError_t take(std::int64_t, const Take<T>&, cudaStream_t)
TRIREME_INSTANTIATE(float);
TRIREME_INSTANTIATE(double);
TRIREME_INSTANTIATE(bfloat16);
TRIREME_INSTANTIATE(float16);
TRIREME_INSTANTIATE(std::int32_t);
TRIREME_INSTANTIATE(std::int64_t);
template cudaError_t take_gradient(std::int64_t, const TakeGradient<float>&, cudaStream_t);
template cudaError_t take_gradient(std::int64_t, const TakeGradient<double>&, cudaStream_t);
template cudaError_t take_gradient(std::int64_t, const TakeGradient<bfloat16>&, cudaStream_t);
template cudaError_t take_gradient(std::int64_t, const TakeGradient<float16>&, cudaStream_t);

}  // namespace trireme::ops::cuda
