#pragma once

#include <cuda_runtime_api.h>

#include "ops/resize/interpolate_body.hpp"

// Launches: T is float, double, bfloat16 or float16.
namespace trireme::ops::cuda {

template <typename T>
cudaError_t interpolate(const InterpolatePixel<T>& body, cudaStream_t stream);
template <typename T>
cudaError_t interpolate_backward(const InterpolateBackward<T>& body, cudaStream_t stream);

}  // namespace trireme::ops::cuda
