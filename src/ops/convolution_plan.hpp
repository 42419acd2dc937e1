#pragma once

#include <compare>
#include <cstdint>

#include "trireme/core/dtype.hpp"
#include "trireme/ops/convolution.hpp"

namespace trireme::ops {

// All that a convolution and its two gradients depend on besides their numbers.
struct ConvolutionShape {
  std::int64_t batch = 0;
  std::int64_t in = 0;
  std::int64_t out = 0;
  std::int64_t groups = 1;
  Extent2d x;
  Extent2d y;
  Extent2d kernel;
  Extent2d stride;
  Extent2d padding;
  Extent2d dilation;
  bool bias = false;                // always float32, as the gradient of the weight
  DType operands = DType::float32;  // of x, y and the weight; also bfloat16

  auto operator<=>(const ConvolutionShape&) const = default;
};

// With oneDNN. What oneDNN prepares for a shape is kept by the calling thread.
void run_convolution(const ConvolutionShape& shape, const void* x, const void* weight, const float* bias, void* y);
void run_convolution_data(const ConvolutionShape& shape, const void* dy, const void* weight, void* dx);
void run_convolution_weight(const ConvolutionShape& shape, const void* x, const void* dy, float* dweight);

// Plain loops, for gradient checks.
void run_convolution(const ConvolutionShape& shape, const double* x, const double* weight, const double* bias, double* y);
void run_convolution_data(const ConvolutionShape& shape, const double* dy, const double* weight, double* dx);
void run_convolution_weight(const ConvolutionShape& shape, const double* x, const double* dy, double* dweight);

}  // namespace trireme::ops
