#pragma once

#include "trireme/optim/optimizer.hpp"

namespace trireme::optim {

struct LionOptions {
  double learning_rate = 1e-4;
  double beta1 = 0.9;       // momentum's share in the direction
  double beta2 = 0.99;      // decay of the momentum
  double weight_decay = 0;  // decoupled, as AdamW's
  Decay decay = Decay::all;
  std::vector<ParameterGroup> groups = {};
};

// Steps of one size: the sign of an average of momentum and gradient (Chen et al. 2023, arXiv 2302.06675). Takes a learning
// rate 3 to 10 times below AdamW's and a weight decay as many times above.
template <typename P, typename D = Cpu>
class Lion final : public Optimizer<P, D> {
 public:
  using T = typename P::Master;

  explicit Lion(FlatStore& store, const LionOptions& options = {});

  Settings settings() const override;

 private:
  void update(const typename Optimizer<P, D>::Piece& piece) override;

  LionOptions options_;
  Tensor<T, D> momentum_;
};

extern template class Lion<Float32, Cpu>;
extern template class Lion<Float64, Cpu>;
extern template class Lion<MixedBfloat16, Cpu>;
extern template class Lion<MixedFloat16, Cpu>;
extern template class Lion<Float32, Cuda>;
extern template class Lion<Float64, Cuda>;
extern template class Lion<MixedBfloat16, Cuda>;
extern template class Lion<MixedFloat16, Cuda>;

}  // namespace trireme::optim
