#include "ops/resize/interpolate_cuda.hpp"

#include "device/cuda/check.hpp"
#include "device/cuda/stream.hpp"
#include "ops/resize/interpolate_on.hpp"
#include "precision/instantiate.hpp"

namespace trireme::ops {

template <>
template <typename T>
void Interpolates<Cuda>::forward(const InterpolatePixel<T>& body) {
  device::check_cuda(cuda::interpolate(body, device::native_stream()), "interpolate");
}

template <>
template <typename T>
void Interpolates<Cuda>::backward(const InterpolateBackward<T>& body) {
  device::check_cuda(cuda::interpolate_backward(body, device::native_stream()), "interpolate");
}

TRIREME_INSTANTIATE(FLOATS, interpolate, Cuda)
TRIREME_INSTANTIATE(FLOATS, interpolate_backward, Cuda)

}  // namespace trireme::ops
