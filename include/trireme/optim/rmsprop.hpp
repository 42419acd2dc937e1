#pragma once

#include "trireme/optim/optimizer.hpp"

namespace trireme::optim {

struct RmspropOptions {
  double learning_rate = 1e-2;
  double smoothing = 0.99;  // PyTorch's alpha
  double epsilon = 1e-8;
  double momentum = 0;
  double weight_decay = 0;  // L2: added to the gradient
  bool centered = false;    // divides by the standard deviation instead of the root mean square
  Decay decay = Decay::all;
  std::vector<ParameterGroup> groups = {};
};

// A running average of squared gradients scales the step; the update of torch.optim.RMSprop.
template <typename P, typename D = Cpu>
class Rmsprop final : public Optimizer<P, D> {
 public:
  using T = typename P::Master;

  explicit Rmsprop(FlatStore& store, const RmspropOptions& options = {});

  Settings settings() const override;

 private:
  void update(const typename Optimizer<P, D>::Piece& piece) override;

  RmspropOptions options_;
  Tensor<T, D> square_average_;
  Tensor<T, D> average_;   // undefined unless centered
  Tensor<T, D> momentum_;  // undefined without momentum
};

extern template class Rmsprop<Float32, Cpu>;
extern template class Rmsprop<Float64, Cpu>;
extern template class Rmsprop<MixedBfloat16, Cpu>;
extern template class Rmsprop<MixedFloat16, Cpu>;
extern template class Rmsprop<Float32, Cuda>;
extern template class Rmsprop<Float64, Cuda>;
extern template class Rmsprop<MixedBfloat16, Cuda>;
extern template class Rmsprop<MixedFloat16, Cuda>;

}  // namespace trireme::optim
