#include "device/cuda/launch.cuh"
#include "ops/search/cumulative_cuda.hpp"

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

#define TRIREME_INSTANTIATE(T, Y)                                         \
  template cudaError_t chunk_totals(const ChunkTotals<T>&, cudaStream_t); \
  template cudaError_t cumulate_chunk(const CumulateChunk<T, Y>&, cudaStream_t)
TRIREME_INSTANTIATE(float, float);
TRIREME_INSTANTIATE(double, double);
TRIREME_INSTANTIATE(bfloat16, bfloat16);
TRIREME_INSTANTIATE(float16, float16);
TRIREME_INSTANTIATE(std::int32_t, std::int64_t);
TRIREME_INSTANTIATE(std::int64_t, std::int64_t);
template cudaError_t cumprod_gradient(const CumprodGradient<float>&, cudaStream_t);
template cudaError_t cumprod_gradient(const CumprodGradient<double>&, cudaStream_t);
template cudaError_t cumprod_gradient(const CumprodGradient<bfloat16>&, cudaStream_t);
template cudaError_t cumprod_gradient(const CumprodGradient<float16>&, cudaStream_t);

}  // namespace trireme::ops::cuda
