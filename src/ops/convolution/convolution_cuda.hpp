#pragma once

#include <cuda_runtime_api.h>

#include "ops/convolution/convolution_body.hpp"

// Launches: T is float, double, bfloat16 or float16.
namespace trireme::ops::cuda {

template <typename T>
cudaError_t convolution(const ConvolutionForward<T>& body, cudaStream_t stream);
template <typename T>
cudaError_t convolution_data(const ConvolutionDataGradient<T>& body, cudaStream_t stream);
template <typename T>
cudaError_t convolution_weight(const ConvolutionWeightGradient<T>& body, cudaStream_t stream);

}  // namespace trireme::ops::cuda
