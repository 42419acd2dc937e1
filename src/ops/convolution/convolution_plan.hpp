#pragma once

#include "ops/convolution/convolution_shape.hpp"

namespace trireme::ops {

// With oneDNN. What oneDNN prepares for a shape is kept by the calling thread.
void run_convolution(const ConvolutionShape& shape, const void* x, const void* weight, const float* bias, void* y);
void run_convolution_data(const ConvolutionShape& shape, const void* dy, const void* weight, void* dx);
void run_convolution_weight(const ConvolutionShape& shape, const void* x, const void* dy, float* dweight);

// Plain loops, for gradient checks.
void run_convolution(const ConvolutionShape& shape, const double* x, const double* weight, const double* bias, double* y);
void run_convolution_data(const ConvolutionShape& shape, const double* dy, const double* weight, double* dx);
void run_convolution_weight(const ConvolutionShape& shape, const double* x, const double* dy, double* dweight);

}  // namespace trireme::ops
