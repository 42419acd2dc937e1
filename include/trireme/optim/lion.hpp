#pragma once

#include "trireme/core/error.hpp"
#include "trireme/core/export.hpp"
#include "trireme/ops/update/lion.hpp"
#include "trireme/ops/update/optimizer.hpp"
#include "trireme/optim/optimizer.hpp"

namespace trireme TRIREME_EXPORT {
namespace optim {

struct LionOptions {
  double learning_rate = 1e-4;
  double beta1 = 0.9;       // momentum's share in the direction
  double beta2 = 0.99;      // decay of the momentum
  double weight_decay = 0;  // decoupled, as in AdamW
  Decay decay = Decay::all;
  std::vector<ParameterGroup> groups = {};
};

// Steps by the sign of an average of momentum and gradient, so all elements change by the same amount (Chen et al. 2023, arXiv
// 2302.06675). Use a learning rate 3 to 10 times smaller than AdamW's and a weight decay larger by the same factor.
template <typename P, typename D = Cpu>
class Lion final : public Optimizer<P, D> {
 public:
  using T = typename P::Master;

  explicit Lion(Model& model, const LionOptions& options = {});

  Settings settings() const override;

 private:
  void update(const typename Optimizer<P, D>::Piece& piece) override;

  LionOptions options_;
  int momentum_;
};

template <TypedModel M>
Lion(const M&, const LionOptions& = {}) -> Lion<typename M::Precision, typename M::Device>;

template <typename P, typename D>
Lion<P, D>::Lion(Model& model, const LionOptions& options)
    : Optimizer<P, D>(
          model, {options.learning_rate, options.weight_decay, options.decay, options.groups, options.beta1, options.beta2}),
      options_(options),
      momentum_(this->add_plane("exp_avg")) {
  require_betas("Lion", options.beta1, options.beta2);
}

template <typename P, typename D>
void Lion<P, D>::update(const typename Optimizer<P, D>::Piece& piece) {
  const ops::LionStep step{.learning_rate = piece.learning_rate,
                           .beta1 = piece.beta1,
                           .beta2 = piece.beta2,
                           .weight_decay = piece.weight_decay,
                           .gradient_scale = piece.gradient_scale,
                           .on_device = piece.on_device};
  ops::update_elements<ops::LionUpdate<T>>(step, piece.count, {piece.gradients, piece.values, piece.plane(momentum_)}, D{});
}

template <typename P, typename D>
Settings Lion<P, D>::settings() const {
  return this->settings_of("Lion", {{"beta1", options_.beta1}, {"beta2", options_.beta2}});
}

extern template class Lion<Float32, Cpu>;
extern template class Lion<MixedBfloat16, Cpu>;
extern template class Lion<MixedFloat16, Cpu>;
extern template class Lion<Float32, Cuda>;
extern template class Lion<MixedBfloat16, Cuda>;
extern template class Lion<MixedFloat16, Cuda>;

}  // namespace optim
}  // namespace trireme
