#pragma once

#include "trireme/core/error.hpp"
#include "trireme/core/export.hpp"
#include "trireme/ops/update/optimizer.hpp"
#include "trireme/ops/update/sgd.hpp"
#include "trireme/optim/optimizer.hpp"

namespace trireme TRIREME_EXPORT {
namespace optim {

struct SgdOptions {
  double learning_rate = 1e-3;
  double momentum = 0;
  double dampening = 0;
  double weight_decay = 0;  // L2: added to the gradient
  bool nesterov = false;
  Decay decay = Decay::all;
  std::vector<ParameterGroup> groups = {};
};

// Stochastic gradient descent with momentum. The update is that of torch.optim.SGD.
template <typename P, typename D = Cpu>
class Sgd final : public Optimizer<P, D> {
 public:
  using T = typename P::Master;

  explicit Sgd(Model& model, const SgdOptions& options = {});

  Settings settings() const override;

 private:
  void update(const typename Optimizer<P, D>::Piece& piece) override;

  SgdOptions options_;
  int momentum_ = Optimizer<P, D>::no_plane;  // no plane without momentum
};

template <TypedModel M>
Sgd(const M&, const SgdOptions& = {}) -> Sgd<typename M::Precision, typename M::Device>;

template <typename P, typename D>
Sgd<P, D>::Sgd(Model& model, const SgdOptions& options)
    : Optimizer<P, D>(model, {options.learning_rate, options.weight_decay, options.decay, options.groups}), options_(options) {
  require(options.momentum >= 0, "SGD's momentum is 0 or more, got {}", options.momentum);
  require(!options.nesterov || (options.momentum > 0 && options.dampening == 0),
          "Nesterov momentum needs a momentum above 0 and no dampening, got {} and {}", options.momentum, options.dampening);
  if (options.momentum > 0) momentum_ = this->add_plane("momentum_buffer");
}

template <typename P, typename D>
void Sgd<P, D>::update(const typename Optimizer<P, D>::Piece& piece) {
  const ops::SgdStep step{.learning_rate = piece.learning_rate,
                          .momentum = options_.momentum,
                          .dampening = options_.dampening,
                          .weight_decay = piece.weight_decay,
                          .nesterov = options_.nesterov,
                          .update = piece.step,
                          .gradient_scale = piece.gradient_scale,
                          .on_device = piece.on_device};
  ops::update_elements<ops::SgdUpdate<T>>(step, piece.count, {piece.gradients, piece.values, piece.plane(momentum_)}, D{});
}

template <typename P, typename D>
Settings Sgd<P, D>::settings() const {
  return this->settings_of(
      "SGD", {{"momentum", options_.momentum}, {"dampening", options_.dampening}, {"nesterov", options_.nesterov}});
}

extern template class Sgd<Float32, Cpu>;
extern template class Sgd<MixedBfloat16, Cpu>;
extern template class Sgd<MixedFloat16, Cpu>;
extern template class Sgd<Float32, Cuda>;
extern template class Sgd<MixedBfloat16, Cuda>;
extern template class Sgd<MixedFloat16, Cuda>;

}  // namespace optim
}  // namespace trireme
