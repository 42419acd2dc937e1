#pragma once

#include "trireme/core/error.hpp"
#include "trireme/core/export.hpp"
#include "trireme/ops/update/optimizer.hpp"
#include "trireme/ops/update/rmsprop.hpp"
#include "trireme/optim/optimizer.hpp"

namespace trireme TRIREME_EXPORT {
namespace optim {

struct RmspropOptions {
  double learning_rate = 1e-2;
  double smoothing = 0.99;  // PyTorch's alpha
  double epsilon = 1e-8;
  double momentum = 0;
  double weight_decay = 0;  // L2: added to the gradient
  bool centered = false;    // divides by the standard deviation instead of the root mean square
  Decay decay = Decay::all;
  std::vector<ParameterGroup> groups = {};
};

// Divides the step by the root of a running average of squared gradients. The update is that of torch.optim.RMSprop.
template <typename P, typename D = Cpu>
class Rmsprop final : public Optimizer<P, D> {
 public:
  using T = typename P::Master;

  explicit Rmsprop(Model& model, const RmspropOptions& options = {});

  Settings settings() const override;

 private:
  void update(const typename Optimizer<P, D>::Piece& piece) override;

  RmspropOptions options_;
  int square_average_;
  int average_ = Optimizer<P, D>::no_plane;   // no plane unless centered
  int momentum_ = Optimizer<P, D>::no_plane;  // no plane without momentum
};

template <TypedModel M>
Rmsprop(const M&, const RmspropOptions& = {}) -> Rmsprop<typename M::Precision, typename M::Device>;

template <typename P, typename D>
Rmsprop<P, D>::Rmsprop(Model& model, const RmspropOptions& options)
    : Optimizer<P, D>(model, {options.learning_rate, options.weight_decay, options.decay, options.groups}),
      options_(options),
      square_average_(this->add_plane("square_avg")) {
  require(options.smoothing >= 0 && options.smoothing < 1, "RMSprop's smoothing lies in [0, 1), got {}", options.smoothing);
  require(options.epsilon >= 0 && options.momentum >= 0, "RMSprop's epsilon and momentum are 0 or more, got {} and {}",
          options.epsilon, options.momentum);
  if (options.centered) average_ = this->add_plane("grad_avg");
  if (options.momentum > 0) momentum_ = this->add_plane("momentum_buffer");
}

template <typename P, typename D>
void Rmsprop<P, D>::update(const typename Optimizer<P, D>::Piece& piece) {
  const ops::RmspropStep step{.learning_rate = piece.learning_rate,
                              .smoothing = options_.smoothing,
                              .epsilon = options_.epsilon,
                              .momentum = options_.momentum,
                              .weight_decay = piece.weight_decay,
                              .gradient_scale = piece.gradient_scale,
                              .on_device = piece.on_device};
  ops::update_elements<ops::RmspropUpdate<T>>(
      step, piece.count,
      {piece.gradients, piece.values, piece.plane(square_average_), piece.plane(average_), piece.plane(momentum_)}, D{});
}

template <typename P, typename D>
Settings Rmsprop<P, D>::settings() const {
  return this->settings_of("RMSprop", {{"smoothing", options_.smoothing},
                                       {"epsilon", options_.epsilon},
                                       {"momentum", options_.momentum},
                                       {"centered", options_.centered}});
}

extern template class Rmsprop<Float32, Cpu>;
extern template class Rmsprop<MixedBfloat16, Cpu>;
extern template class Rmsprop<MixedFloat16, Cpu>;
extern template class Rmsprop<Float32, Cuda>;
extern template class Rmsprop<MixedBfloat16, Cuda>;
extern template class Rmsprop<MixedFloat16, Cuda>;

}  // namespace optim
}  // namespace trireme
