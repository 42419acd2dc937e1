#pragma once

#include "trireme/optim/optimizer.hpp"

namespace trireme::optim {

struct SgdOptions {
  double learning_rate = 1e-3;
  double momentum = 0;
  double dampening = 0;
  double weight_decay = 0;  // L2: added to the gradient
  bool nesterov = false;
  Decay decay = Decay::all;
  std::vector<ParameterGroup> groups = {};
};

// Stochastic gradient descent with momentum; the update of torch.optim.SGD.
template <typename P, typename D = Cpu>
class Sgd final : public Optimizer<P, D> {
 public:
  using T = typename P::Master;

  explicit Sgd(FlatStore& store, const SgdOptions& options = {});

  Settings settings() const override;

 private:
  void update(const typename Optimizer<P, D>::Piece& piece) override;

  SgdOptions options_;
  Tensor<T, D> momentum_;  // undefined without momentum
};

extern template class Sgd<Float32, Cpu>;
extern template class Sgd<Float64, Cpu>;
extern template class Sgd<MixedBfloat16, Cpu>;
extern template class Sgd<MixedFloat16, Cpu>;
extern template class Sgd<Float32, Cuda>;
extern template class Sgd<Float64, Cuda>;
extern template class Sgd<MixedBfloat16, Cuda>;
extern template class Sgd<MixedFloat16, Cuda>;

}  // namespace trireme::optim
