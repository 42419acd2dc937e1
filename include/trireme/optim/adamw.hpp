#pragma once

#include "trireme/optim/optimizer.hpp"

namespace trireme::optim {

struct AdamWOptions {
  double learning_rate = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0.01;
  Decay decay = Decay::all;
};

// Loshchilov, Hutter 2019, arXiv 1711.05101; the update of torch.optim.AdamW.
template <typename P, typename D = Cpu>
class AdamW final : public Optimizer<P, D> {
 public:
  using T = typename P::Master;

  explicit AdamW(FlatStore& store, const AdamWOptions& options = {});

  Settings settings() const override;

 private:
  void update(const typename Optimizer<P, D>::Run& run) override;

  AdamWOptions options_;
  Tensor<T, D> first_moment_;
  Tensor<T, D> second_moment_;
};

extern template class AdamW<Float32, Cpu>;
extern template class AdamW<Float64, Cpu>;

}  // namespace trireme::optim
