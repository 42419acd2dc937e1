#include "device/cuda/launch.cuh"
#include "ops/index/indexing_cuda.hpp"
#include "precision/instantiate.hpp"

namespace trireme::ops::cuda {

template <typename T>
cudaError_t gather_elements(const GatherElements<T>& body, cudaStream_t stream) {
  return device::for_each_index(body.sizes.outer * body.sizes.places * body.sizes.inner, stream, body);
}

template <typename T>
cudaError_t put_lines(const ScatterLine<false, T>& body, cudaStream_t stream) {
  return device::for_each_index(body.sizes.outer * body.sizes.inner * body.owners, stream, body);
}

template <typename T>
cudaError_t add_lines(const ScatterLine<true, T>& body, cudaStream_t stream) {
  return device::for_each_index(body.sizes.outer * body.sizes.inner * body.owners, stream, body);
}

template <typename T>
cudaError_t extreme_lines(const ScatterExtremeLine<T>& body, cudaStream_t stream) {
  return device::for_each_index(body.sizes.outer * body.sizes.inner * body.owners, stream, body);
}

template <typename T>
cudaError_t scatter_lines_backward(const ScatterLineBackward<T>& body, cudaStream_t stream) {
  return device::for_each_index(body.sizes.outer * body.sizes.inner * body.owners, stream, body);
}

cudaError_t widen_index(std::int64_t count, const WidenIndex& body, cudaStream_t stream) {
  return device::for_each_index(count, stream, body);
}

TRIREME_INSTANTIATE(NUMBERS, gather_elements)
TRIREME_INSTANTIATE(NUMBERS, put_lines)
TRIREME_INSTANTIATE(NUMBERS, extreme_lines)
TRIREME_INSTANTIATE(NUMBERS, scatter_lines_backward)

TRIREME_INSTANTIATE(SINGLE_AND_DOUBLE, add_lines)
TRIREME_INSTANTIATE(WHOLE_NUMBERS, add_lines)

}  // namespace trireme::ops::cuda
