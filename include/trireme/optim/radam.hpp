#pragma once

#include "trireme/core/error.hpp"
#include "trireme/core/export.hpp"
#include "trireme/ops/update/optimizer.hpp"
#include "trireme/ops/update/radam.hpp"
#include "trireme/optim/optimizer.hpp"

namespace trireme TRIREME_EXPORT {
namespace optim {

struct RadamOptions {
  double learning_rate = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0;              // L2: added to the gradient
  bool decoupled_weight_decay = false;  // decays the weights instead, as AdamW does
  bool maximize = false;                // maximizes the objective: negates the gradient
  Decay decay = Decay::all;
  std::vector<ParameterGroup> groups = {};
};

// Adam that steps by momentum only until the second moment has enough updates, and then rectifies the variance, so RAdam needs
// no warm-up (Liu et al. 2020, arXiv 1908.03265). The update is that of torch.optim.RAdam.
template <typename P, typename D = Cpu>
class Radam final : public Optimizer<P, D> {
 public:
  using T = typename P::Master;

  explicit Radam(Model& model, const RadamOptions& options = {});

  Settings settings() const override;

 private:
  void update(const typename Optimizer<P, D>::Piece& piece) override;

  RadamOptions options_;
  int first_moment_;
  int second_moment_;
};

template <TypedModel M>
Radam(const M&, const RadamOptions& = {}) -> Radam<typename M::Precision, typename M::Device>;

template <typename P, typename D>
Radam<P, D>::Radam(Model& model, const RadamOptions& options)
    : Optimizer<P, D>(
          model, {options.learning_rate, options.weight_decay, options.decay, options.groups, options.beta1, options.beta2}),
      options_(options),
      first_moment_(this->add_plane("exp_avg")),
      second_moment_(this->add_plane("exp_avg_sq")) {
  require_betas("RAdam", options.beta1, options.beta2);
  require(options.epsilon >= 0, "RAdam's epsilon is 0 or more, got {}", options.epsilon);
}

template <typename P, typename D>
void Radam<P, D>::update(const typename Optimizer<P, D>::Piece& piece) {
  const ops::RadamStep step{.learning_rate = piece.learning_rate,
                            .beta1 = piece.beta1,
                            .beta2 = piece.beta2,
                            .epsilon = options_.epsilon,
                            .weight_decay = piece.weight_decay,
                            .decoupled = options_.decoupled_weight_decay,
                            .update = piece.step,
                            .gradient_scale = options_.maximize ? -piece.gradient_scale : piece.gradient_scale,
                            .on_device = piece.on_device};
  ops::update_elements<ops::RadamUpdate<T>>(
      step, piece.count, {piece.gradients, piece.values, piece.plane(first_moment_), piece.plane(second_moment_)}, D{});
}

template <typename P, typename D>
Settings Radam<P, D>::settings() const {
  return this->settings_of("RAdam", {{"beta1", options_.beta1},
                                     {"beta2", options_.beta2},
                                     {"epsilon", options_.epsilon},
                                     {"decoupled_weight_decay", options_.decoupled_weight_decay},
                                     {"maximize", options_.maximize}});
}

extern template class Radam<Float32, Cpu>;
extern template class Radam<MixedBfloat16, Cpu>;
extern template class Radam<MixedFloat16, Cpu>;
extern template class Radam<Float32, Cuda>;
extern template class Radam<MixedBfloat16, Cuda>;
extern template class Radam<MixedFloat16, Cuda>;

}  // namespace optim
}  // namespace trireme
