#include "device/cuda/launch.cuh"
#include "ops/search/sort_cuda.hpp"

namespace trireme::ops::cuda {

template <typename T>
cudaError_t rank_elements(const RankElements<T>& body, cudaStream_t stream) {
  return device::for_each_index(body.sizes.results() * body.length, stream, body);
}

cudaError_t compare_elements(std::int64_t rows, const CompareElements& body, cudaStream_t stream) {
  return device::for_each_index(rows * (body.length / 2), stream, body);
}

template <typename T>
cudaError_t take_ranked(const TakeRanked<T>& body, cudaStream_t stream) {
  return device::for_each_index(body.sizes.results() * body.taken, stream, body);
}

#define TRIREME_INSTANTIATE(T)                                              \
  template cudaError_t rank_elements(const RankElements<T>&, cudaStream_t); \
  template cudaError_t take_ranked(const TakeRanked<T>&, cudaStream_t)
TRIREME_INSTANTIATE(float);
TRIREME_INSTANTIATE(double);
TRIREME_INSTANTIATE(bfloat16);
TRIREME_INSTANTIATE(float16);
TRIREME_INSTANTIATE(std::int32_t);
TRIREME_INSTANTIATE(std::int64_t);

}  // namespace trireme::ops::cuda
