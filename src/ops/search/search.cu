#include "device/cuda/launch.cuh"
#include "ops/search/search_cuda.hpp"
#include "precision/instantiate.hpp"

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

TRIREME_INSTANTIATE(NUMBERS, first_extreme)
TRIREME_INSTANTIATE(NUMBERS, take)

TRIREME_INSTANTIATE(FLOATS, take_gradient)

}  // namespace trireme::ops::cuda
