#pragma once

#include "trireme/core/error.hpp"
#include "trireme/core/export.hpp"
#include "trireme/ops/update/nadam.hpp"
#include "trireme/ops/update/optimizer.hpp"
#include "trireme/optim/optimizer.hpp"

namespace trireme TRIREME_EXPORT {
namespace optim {

struct NadamOptions {
  double learning_rate = 2e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0;              // L2: added to the gradient
  double momentum_decay = 0.004;        // the momentum of step 1, 2, ... is beta1 * (1 - 0.96^(step * momentum_decay) / 2)
  bool decoupled_weight_decay = false;  // decays the weights instead, as AdamW does
  bool maximize = false;                // maximizes the objective: negates the gradient
  Decay decay = Decay::all;
  std::vector<ParameterGroup> groups = {};
};

// Adam with Nesterov's momentum, which rises to beta1 (Dozat 2016). The update is that of torch.optim.NAdam.
template <typename P, typename D = Cpu>
class Nadam final : public Optimizer<P, D> {
 public:
  using T = typename P::Master;

  explicit Nadam(Model& model, const NadamOptions& options = {});

  Settings settings() const override;

 private:
  void update(const typename Optimizer<P, D>::Piece& piece) override;

  NadamOptions options_;
  int first_moment_;
  int second_moment_;
};

template <TypedModel M>
Nadam(const M&, const NadamOptions& = {}) -> Nadam<typename M::Precision, typename M::Device>;

template <typename P, typename D>
Nadam<P, D>::Nadam(Model& model, const NadamOptions& options)
    : Optimizer<P, D>(
          model, {options.learning_rate, options.weight_decay, options.decay, options.groups, options.beta1, options.beta2}),
      options_(options),
      first_moment_(this->add_plane("exp_avg")),
      second_moment_(this->add_plane("exp_avg_sq")) {
  require_betas("NAdam", options.beta1, options.beta2);
  require(options.epsilon >= 0 && options.momentum_decay >= 0,
          "NAdam's epsilon and momentum_decay are 0 or more, got {} and {}", options.epsilon, options.momentum_decay);
}

template <typename P, typename D>
void Nadam<P, D>::update(const typename Optimizer<P, D>::Piece& piece) {
  const ops::NadamStep step{.learning_rate = piece.learning_rate,
                            .beta1 = piece.beta1,
                            .beta2 = piece.beta2,
                            .epsilon = options_.epsilon,
                            .weight_decay = piece.weight_decay,
                            .momentum_decay = options_.momentum_decay,
                            .decoupled = options_.decoupled_weight_decay,
                            .update = piece.step,
                            .gradient_scale = options_.maximize ? -piece.gradient_scale : piece.gradient_scale,
                            .on_device = piece.on_device};
  ops::update_elements<ops::NadamUpdate<T>>(
      step, piece.count, {piece.gradients, piece.values, piece.plane(first_moment_), piece.plane(second_moment_)}, D{});
}

template <typename P, typename D>
Settings Nadam<P, D>::settings() const {
  return this->settings_of("NAdam", {{"beta1", options_.beta1},
                                     {"beta2", options_.beta2},
                                     {"epsilon", options_.epsilon},
                                     {"momentum_decay", options_.momentum_decay},
                                     {"decoupled_weight_decay", options_.decoupled_weight_decay},
                                     {"maximize", options_.maximize}});
}

extern template class Nadam<Float32, Cpu>;
extern template class Nadam<MixedBfloat16, Cpu>;
extern template class Nadam<MixedFloat16, Cpu>;
extern template class Nadam<Float32, Cuda>;
extern template class Nadam<MixedBfloat16, Cuda>;
extern template class Nadam<MixedFloat16, Cuda>;

}  // namespace optim
}  // namespace trireme
