#include "device/cuda/launch.cuh"
#include "ops/reduce/reductions_cuda.hpp"
#include "precision/instantiate.hpp"

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

TRIREME_INSTANTIATE(ELEMENTS, reduce_parts)
TRIREME_INSTANTIATE(FLOATS, gradient_scale)
TRIREME_INSTANTIATE(FLOATS, reduction_gradient)
TRIREME_INSTANTIATE(FLOATS, chunk_products)
TRIREME_INSTANTIATE(FLOATS, product_gradient)
#define TRIREME_FINISH_IN_DOUBLE(T) TRIREME_INSTANCE(double, finish, T)
TRIREME_EACH(FLOATS, TRIREME_FINISH_IN_DOUBLE)
TRIREME_INSTANCE(float, finish, double)
TRIREME_INSTANTIATE(HALVES, finish, double)
TRIREME_INSTANTIATE(WHOLE_NUMBERS, finish, std::int64_t)
TRIREME_INSTANCE(bool, finish, std::int64_t)

}  // namespace trireme::ops::cuda
