#pragma once

#include "trireme/optim/optimizer.hpp"

namespace trireme::optim {

struct AdagradOptions {
  double learning_rate = 1e-2;
  double learning_rate_decay = 0;  // the rate of step 1, 2, ... is divided by 1 + (step - 1) * learning_rate_decay
  double epsilon = 1e-10;
  double weight_decay = 0;  // L2: added to the gradient
  double initial_sum = 0;   // of squared gradients
  Decay decay = Decay::all;
  std::vector<ParameterGroup> groups = {};
};

// The sum of all squared gradients scales the step (Duchi, Hazan, Singer 2011, JMLR 12); the update of torch.optim.Adagrad.
template <typename P, typename D = Cpu>
class Adagrad final : public Optimizer<P, D> {
 public:
  using T = typename P::Master;

  explicit Adagrad(FlatStore& store, const AdagradOptions& options = {});

  Settings settings() const override;

 private:
  void update(const typename Optimizer<P, D>::Piece& piece) override;

  AdagradOptions options_;
  Tensor<T, D> sum_of_squares_;
};

extern template class Adagrad<Float32, Cpu>;
extern template class Adagrad<Float64, Cpu>;
extern template class Adagrad<MixedBfloat16, Cpu>;
extern template class Adagrad<MixedFloat16, Cpu>;
extern template class Adagrad<Float32, Cuda>;
extern template class Adagrad<Float64, Cuda>;
extern template class Adagrad<MixedBfloat16, Cuda>;
extern template class Adagrad<MixedFloat16, Cuda>;

}  // namespace trireme::optim
