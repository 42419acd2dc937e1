#include "device/cuda/launch.cuh"
#include "ops/search/sort_cuda.hpp"
#include "precision/instantiate.hpp"

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

TRIREME_INSTANTIATE(NUMBERS, rank_elements)
TRIREME_INSTANTIATE(NUMBERS, take_ranked)

}  // namespace trireme::ops::cuda
