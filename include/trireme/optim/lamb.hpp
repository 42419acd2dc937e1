#pragma once

#include <limits>

#include "trireme/ops/update/optimizer.hpp"
#include "trireme/optim/optimizer.hpp"

namespace trireme::optim {

struct LambOptions {
  double learning_rate = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-6;
  double weight_decay = 0.01;
  bool bias_correction = true;
  double min_norm = 0;  // |w| is clamped to [min_norm, max_norm], the paper's phi
  double max_norm = std::numeric_limits<double>::infinity();
  double max_trust_ratio = std::numeric_limits<double>::infinity();  // bounds clamp(|w|) / |u|
  Decay decay = Decay::all;
  std::vector<ParameterGroup> groups = {};
};

// Adam's direction, scaled for each parameter to the norm of its weights: the rate is multiplied by the trust ratio
// clamp(|w|) / |u|, 1 where a norm is 0 (You et al. 2020, arXiv 1904.00962, algorithm 2).
template <typename P, typename D = Cpu>
class Lamb final : public Optimizer<P, D> {
 public:
  using T = typename P::Master;

  explicit Lamb(FlatStore& store, const LambOptions& options = {});

  Settings settings() const override;

 private:
  void measure(const typename Optimizer<P, D>::Piece& piece) override;
  void update(const typename Optimizer<P, D>::Piece& piece) override;
  ops::LambStep step_of(const typename Optimizer<P, D>::Piece& piece) const;

  LambOptions options_;
  Tensor<T, D> first_moment_;
  Tensor<T, D> second_moment_;
};

extern template class Lamb<Float32, Cpu>;
extern template class Lamb<Float64, Cpu>;
extern template class Lamb<MixedBfloat16, Cpu>;
extern template class Lamb<MixedFloat16, Cpu>;
extern template class Lamb<Float32, Cuda>;
extern template class Lamb<Float64, Cuda>;
extern template class Lamb<MixedBfloat16, Cuda>;
extern template class Lamb<MixedFloat16, Cuda>;

}  // namespace trireme::optim
