#include "device/cuda/launch.cuh"
#include "ops/resize/interpolate_cuda.hpp"
#include "precision/instantiate.hpp"

namespace trireme::ops::cuda {

template <typename T>
cudaError_t interpolate(const InterpolatePixel<T>& body, cudaStream_t stream) {
  return device::for_each_index(body.sizes.images * body.sizes.height.out * body.sizes.width.out, stream, body);
}

template <typename T>
cudaError_t interpolate_backward(const InterpolateBackward<T>& body, cudaStream_t stream) {
  return device::for_each_index(body.sizes.images * body.sizes.height.in * body.sizes.width.in, stream, body);
}

TRIREME_INSTANTIATE(FLOATS, interpolate)
TRIREME_INSTANTIATE(FLOATS, interpolate_backward)

}  // namespace trireme::ops::cuda
