#pragma once

#include <vector>

#include "layers.hpp"
#include "trireme/core/dtype.hpp"
#include "trireme/tensor/tensor.hpp"

// This library's convolutions and batch norms of one training step, each kind alone, with random operands for each layer.
// T: float, bfloat16, float16.
template <typename T>
class LayerPasses {
 public:
  LayerPasses(const std::vector<Layer>& layers, std::int64_t batch);

  void convolutions();
  void batch_norms();

 private:
  using A = trireme::Accumulate<T>;
  struct Operands {
    Layer layer;
    trireme::Tensor<T> x;  // of the convolution
    trireme::Tensor<T> dx;
    trireme::Tensor<T> weight;
    trireme::Tensor<A> dweight;
    trireme::Tensor<T> y;  // of the convolution, and dy for both
    trireme::Tensor<T> normal;
    trireme::Tensor<T> dnormal;
    trireme::Tensor<T> residual;  // undefined without one
    trireme::Tensor<double> mean;
    trireme::Tensor<double> rstd;
    trireme::Tensor<A> scale;
  };
  std::vector<Operands> layers_;
};

extern template class LayerPasses<float>;
extern template class LayerPasses<trireme::bfloat16>;
extern template class LayerPasses<trireme::float16>;
