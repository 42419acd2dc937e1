#include "device/cuda/launch.cuh"
#include "ops/reduce/reductions_cuda.hpp"

namespace trireme::ops::cuda {

std::int64_t num_reduce_parts(const ReduceSizes& sizes) {
  constexpr std::int64_t elements_of_thread = 32;
  constexpr std::int64_t threads = std::int64_t{device::most_blocks} * device::threads_per_block;
  const std::int64_t most = sizes.results() < threads ? threads / sizes.results() : 1;
  const std::int64_t parts = (sizes.reduced + elements_of_thread - 1) / elements_of_thread;
  return parts < 1 ? 1 : parts < most ? parts : most;
}

std::int64_t num_chunks(const ReduceSizes& sizes) {
  std::int64_t chunks = 1;
  while (chunks * chunks * 4 <= sizes.reduced) chunks *= 2;
  return chunks;
}

template <typename T>
cudaError_t reduce_parts(const ReduceParts<T>& body, cudaStream_t stream) {
  return device::for_each_index(body.sizes.results() * body.parts, stream, body);
}

template <typename Y, typename V>
cudaError_t finish(std::int64_t count, const FinishReduction<Y, V>& body, cudaStream_t stream) {
  return device::for_each_index(count, stream, body);
}

template <typename T>
cudaError_t gradient_scale(std::int64_t count, const GradientScale<T>& body, cudaStream_t stream) {
  return device::for_each_index(count, stream, body);
}

template <typename T>
cudaError_t reduction_gradient(const ReductionGradient<T>& body, cudaStream_t stream) {
  return device::for_each_index(body.sizes.results() * body.sizes.reduced, stream, body);
}

template <typename T>
cudaError_t chunk_products(const ChunkProduct<T>& body, cudaStream_t stream) {
  return device::for_each_index(body.sizes.results() * body.chunks, stream, body);
}

template <typename T>
cudaError_t product_gradient(const ProductGradient<T>& body, cudaStream_t stream) {
  return device::for_each_index(body.sizes.results() * body.chunks, stream, body);
}

#define TRIREME_INSTANTIATE(T)                                                                \
  template cudaError_t reduce_parts(const ReduceParts<T>&, cudaStream_t);                     \
  template cudaError_t finish(std::int64_t, const FinishReduction<double, T>&, cudaStream_t); \
  template cudaError_t gradient_scale(std::int64_t, const GradientScale<T>&, cudaStream_t);   \
  template cudaError_t reduction_gradient(const ReductionGradient<T>&, cudaStream_t);         \
  template cudaError_t chunk_products(const ChunkProduct<T>&, cudaStream_t);                  \
  template cudaError_t product_gradient(const ProductGradient<T>&, cudaStream_t)
TRIREME_INSTANTIATE(float);
TRIREME_INSTANTIATE(double);
TRIREME_INSTANTIATE(bfloat16);
TRIREME_INSTANTIATE(float16);
template cudaError_t finish(std::int64_t, const FinishReduction<float, double>&, cudaStream_t);
template cudaError_t finish(std::int64_t, const FinishReduction<bfloat16, double>&, cudaStream_t);
template cudaError_t finish(std::int64_t, const FinishReduction<float16, double>&, cudaStream_t);
template cudaError_t reduce_parts(const ReduceParts<std::int32_t>&, cudaStream_t);
template cudaError_t reduce_parts(const ReduceParts<std::int64_t>&, cudaStream_t);
template cudaError_t reduce_parts(const ReduceParts<bool>&, cudaStream_t);
template cudaError_t finish(std::int64_t, const FinishReduction<std::int32_t, std::int64_t>&, cudaStream_t);
template cudaError_t finish(std::int64_t, const FinishReduction<std::int64_t, std::int64_t>&, cudaStream_t);
template cudaError_t finish(std::int64_t, const FinishReduction<bool, std::int64_t>&, cudaStream_t);

}  // namespace trireme::ops::cuda
