#pragma once

#include <memory>
#include <vector>

#include "layers.hpp"
#include "trireme/core/dtype.hpp"

// Runs only the convolutions of a training step, through oneDNN, in step order: with kept plans and random operands for each,
// in the layouts that oneDNN chooses. In bfloat16 too, with float32 gradients of weights.
class ConvolutionFloor {
 public:
  // Null where the processor has no products of this type.
  static std::unique_ptr<ConvolutionFloor> make(const std::vector<Layer>& layers, std::int64_t batch, trireme::DType dtype);

  ConvolutionFloor(const std::vector<Layer>& layers, std::int64_t batch, trireme::DType dtype);
  ~ConvolutionFloor();
  void run();

 private:
  struct Plans;
  std::unique_ptr<Plans> plans_;
};

// Operations of one step: forward, gradients of weights and, except in the first layer, of images.
double convolution_operations(const std::vector<Layer>& layers, std::int64_t batch);
