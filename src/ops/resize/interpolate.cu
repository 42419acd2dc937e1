#include "device/cuda/launch.cuh"
#include "ops/resize/interpolate_cuda.hpp"

namespace trireme::ops::cuda {

template <typename T>
cudaError_t interpolate(const InterpolatePixel<T>& body, cudaStream_t stream) {
  return device::for_each_index(body.sizes.images * body.sizes.height.out * body.sizes.width.out, stream, body);
}

template <typename T>
cudaError_t interpolate_backward(const InterpolateBackward<T>& body, cudaStream_t stream) {
  return device::for_each_index(body.sizes.images * body.sizes.height.in * body.sizes.width.in, stream, body);
}

#define TRIREME_INSTANTIATE(T)                                                \
  template cudaError_t interpolate(const InterpolatePixel<T>&, cudaStream_t); \
  template cudaError_t interpolate_backward(const InterpolateBackward<T>&, cudaStream_t)
TRIREME_INSTANTIATE(float);
TRIREME_INSTANTIATE(double);
TRIREME_INSTANTIATE(bfloat16);
TRIREME_INSTANTIATE(float16);

}  // namespace trireme::ops::cuda
