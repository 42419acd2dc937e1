#include "device/cuda/launch.cuh"
#include "ops/index/indexing_cuda.hpp"

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

#define TRIREME_INSTANTIATE(T)                                                    \
  template cudaError_t gather_elements(const GatherElements<T>&, cudaStream_t);   \
  template cudaError_t put_lines(const ScatterLine<false, T>&, cudaStream_t);     \
  template cudaError_t extreme_lines(const ScatterExtremeLine<T>&, cudaStream_t); \
  template cudaError_t scatter_lines_backward(const ScatterLineBackward<T>&, cudaStream_t)
TRIREME_INSTANTIATE(float);
TRIREME_INSTANTIATE(double);
TRIREME_INSTANTIATE(bfloat16);
TRIREME_INSTANTIATE(float16);
TRIREME_INSTANTIATE(std::int32_t);
TRIREME_INSTANTIATE(std::int64_t);
template cudaError_t add_lines(const ScatterLine<true, float>&, cudaStream_t);
template cudaError_t add_lines(const ScatterLine<true, double>&, cudaStream_t);
template cudaError_t add_lines(const ScatterLine<true, std::int32_t>&, cudaStream_t);
template cudaError_t add_lines(const ScatterLine<true, std::int64_t>&, cudaStream_t);

}  // namespace trireme::ops::cuda
