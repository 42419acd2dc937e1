#include "trireme/optim/sgd.hpp"

#include "precision/each_policy.hpp"
#include "trireme/core/error.hpp"
#include "trireme/ops/update/optimizer.hpp"

namespace trireme::optim {

template <typename P, typename D>
Sgd<P, D>::Sgd(FlatStore& store, const SgdOptions& options)
    : Optimizer<P, D>(store, {options.learning_rate, options.weight_decay, options.decay, options.groups}), options_(options) {
  require(options.momentum >= 0, "SGD's momentum is 0 or more, got {}", options.momentum);
  require(!options.nesterov || (options.momentum > 0 && options.dampening == 0),
          "Nesterov momentum needs a momentum above 0 and no dampening, got {} and {}", options.momentum, options.dampening);
  if (options.momentum > 0) momentum_ = this->make_plane("momentum_buffer");
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
  T* momentum = momentum_.defined() ? momentum_.data() + piece.offset : nullptr;
  ops::sgd(piece.values, piece.gradients, momentum, piece.count, step, D{});
}

template <typename P, typename D>
Settings Sgd<P, D>::settings() const {
  return this->settings_of(
      "SGD", {{"momentum", options_.momentum}, {"dampening", options_.dampening}, {"nesterov", options_.nesterov ? 1 : 0}});
}

#define TRIREME_INSTANTIATE(P) template class Sgd<P, TRIREME_DEVICE>;
TRIREME_EACH_POLICY(TRIREME_INSTANTIATE)
#undef TRIREME_INSTANTIATE

}  // namespace trireme::optim
