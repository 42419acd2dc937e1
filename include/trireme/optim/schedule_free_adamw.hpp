#pragma once

#include "trireme/core/error.hpp"
#include "trireme/core/export.hpp"
#include "trireme/optim/optimizer.hpp"

namespace trireme TRIREME_EXPORT {
namespace optim {

struct ScheduleFreeAdamWOptions {
  double learning_rate = 2.5e-3;
  double beta1 = 0.9;  // above 0; the gradients are computed this near to the average
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0;  // decoupled
  std::int64_t warmup = 0;  // number of first updates of a parameter in which its rate rises
  Decay decay = Decay::all;
  std::vector<ParameterGroup> groups = {};
};

// AdamW without a learning rate schedule: the trained model is the average of its iterates (Defazio et al. 2024, arXiv
// 2405.15682, algorithm 1). Keep the learning rate constant, because the average assumes a constant rate after the first
// `warmup` updates. During training, the model's values lie between the average and the newest iterate. To evaluate or save the
// average, swap it in:
//
//   optim::ScheduleFreeAdamW optimizer(net, {.warmup = 100});
//   ...
//   optimizer.swap();
//   evaluate(net);
//   optimizer.swap();
template <typename P, typename D = Cpu>
class ScheduleFreeAdamW final : public Optimizer<P, D> {
 public:
  using T = typename P::Master;

  explicit ScheduleFreeAdamW(Model& model, const ScheduleFreeAdamWOptions& options = {});

  // Replaces the model's values by the average; the next call restores the values with the same bits. In between, steps and
  // checkpoints are errors, and each rank holds a copy of all trained values. Collective.
  void swap();
  bool swapped_in() const { return kept_.defined(); }

  Settings settings() const override;

 private:
  using Piece = typename Optimizer<P, D>::Piece;

  void require_trained_values() const override;
  void update(const Piece& piece) override;

  FlatStore& store_;
  ScheduleFreeAdamWOptions options_;
  int offset_;  // plane: newest iterate minus the values
  int second_moment_;
  Tensor<T, D> kept_;  // the trained values, while the average is swapped in
};

template <TypedModel M>
ScheduleFreeAdamW(const M&, const ScheduleFreeAdamWOptions& = {})
    -> ScheduleFreeAdamW<typename M::Precision, typename M::Device>;

extern template class ScheduleFreeAdamW<Float32, Cpu>;
extern template class ScheduleFreeAdamW<MixedBfloat16, Cpu>;
extern template class ScheduleFreeAdamW<MixedFloat16, Cpu>;
extern template class ScheduleFreeAdamW<Float32, Cuda>;
extern template class ScheduleFreeAdamW<MixedBfloat16, Cuda>;
extern template class ScheduleFreeAdamW<MixedFloat16, Cuda>;

}  // namespace optim
}  // namespace trireme
