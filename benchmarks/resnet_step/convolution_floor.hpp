#pragma once

#include <memory>
#include <vector>

#include "layers.hpp"
#include "trireme/core/dtype.hpp"

// All convolutions of a training step alone through oneDNN, in step order: plans kept, each on random operands of its own, in
// the layouts that oneDNN chooses. In bfloat16 too, with float32 gradients of weights.
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

// Of one step: forward, gradients of weights and, but for the first layer, of images.
double convolution_operations(const std::vector<Layer>& layers, std::int64_t batch);
