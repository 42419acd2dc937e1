#pragma once

#include "trireme/optim/optimizer.hpp"

namespace trireme::optim {

struct LarsOptions {
  double learning_rate = 0.1;
  double momentum = 0.9;
  double weight_decay = 0;
  double trust = 0.001;  // the paper's trust coefficient
  Decay decay = Decay::all;
  std::vector<ParameterGroup> groups = {};
};

// Momentum SGD whose rate follows each parameter's norms: trust * |w| / (|g| + weight_decay * |w|), 1 where a norm is 0 (You,
// Gitman, Ginsburg 2017, arXiv 1708.03888).
template <typename P, typename D = Cpu>
class Lars final : public Optimizer<P, D> {
 public:
  using T = typename P::Master;

  explicit Lars(FlatStore& store, const LarsOptions& options = {});

  Settings settings() const override;

 private:
  void measure(const typename Optimizer<P, D>::Piece& piece) override;
  void update(const typename Optimizer<P, D>::Piece& piece) override;

  LarsOptions options_;
  Tensor<T, D> momentum_;
};

extern template class Lars<Float32, Cpu>;
extern template class Lars<Float64, Cpu>;
extern template class Lars<MixedBfloat16, Cpu>;
extern template class Lars<MixedFloat16, Cpu>;
extern template class Lars<Float32, Cuda>;
extern template class Lars<Float64, Cuda>;
extern template class Lars<MixedBfloat16, Cuda>;
extern template class Lars<MixedFloat16, Cuda>;

}  // namespace trireme::optim
