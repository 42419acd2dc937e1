#include "device/cuda/launch.cuh"
#include "ops/search/cumulative_cuda.hpp"
#include "precision/instantiate.hpp"

namespace trireme::ops::cuda {

template <typename T>
cudaError_t chunk_totals(const ChunkTotals<T>& body, cudaStream_t stream) {
  return device::for_each_index(body.of.sizes.results() * body.of.chunks, stream, body);
}

template <typename T, typename Y>
cudaError_t cumulate_chunk(const CumulateChunk<T, Y>& body, cudaStream_t stream) {
  return device::for_each_index(body.of.sizes.results() * body.of.chunks, stream, body);
}

template <typename T>
cudaError_t cumprod_gradient(const CumprodGradient<T>& body, cudaStream_t stream) {
  return device::for_each_index(body.sizes.results(), stream, body);
}

#define TRIREME_CUMULATE_CHUNK(T) TRIREME_INSTANCE(T, cumulate_chunk, T)
TRIREME_EACH(FLOATS, TRIREME_CUMULATE_CHUNK)
TRIREME_INSTANTIATE(WHOLE_NUMBERS, cumulate_chunk, std::int64_t)
TRIREME_INSTANTIATE(NUMBERS, chunk_totals)
TRIREME_INSTANTIATE(FLOATS, cumprod_gradient)

}  // namespace trireme::ops::cuda
