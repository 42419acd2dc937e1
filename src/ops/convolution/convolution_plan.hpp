#pragma once

#include "ops/convolution/convolution_shape.hpp"

namespace trireme::ops {

// Run by oneDNN. The calling thread keeps the plans that oneDNN makes for each shape.
void run_convolution(const ConvolutionShape& shape, const void* x, const void* weight, const float* bias, void* y);
void run_convolution_data(const ConvolutionShape& shape, const void* dy, const void* weight, void* dx);
void run_convolution_weight(const ConvolutionShape& shape, const void* x, const void* dy, float* dweight);

// By plain loops, for gradient checks.
void run_convolution(const ConvolutionShape& shape, const double* x, const double* weight, const double* bias, double* y);
void run_convolution_data(const ConvolutionShape& shape, const double* dy, const double* weight, double* dx);
void run_convolution_weight(const ConvolutionShape& shape, const double* x, const double* dy, double* dweight);

}  // namespace trireme::ops
