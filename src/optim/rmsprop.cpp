#include "trireme/optim/rmsprop.hpp"

#include "precision/each_policy.hpp"
#include "trireme/core/error.hpp"
#include "trireme/ops/update/optimizer.hpp"

namespace trireme::optim {

template <typename P, typename D>
Rmsprop<P, D>::Rmsprop(FlatStore& store, const RmspropOptions& options)
    : Optimizer<P, D>(store, {options.learning_rate, options.weight_decay, options.decay, options.groups}),
      options_(options),
      square_average_(this->make_plane("square_avg")) {
  require(options.smoothing >= 0 && options.smoothing < 1, "RMSprop's smoothing lies in [0, 1), got {}", options.smoothing);
  require(options.epsilon >= 0 && options.momentum >= 0, "RMSprop's epsilon and momentum are 0 or more, got {} and {}",
          options.epsilon, options.momentum);
  if (options.centered) average_ = this->make_plane("grad_avg");
  if (options.momentum > 0) momentum_ = this->make_plane("momentum_buffer");
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
  T* average = average_.defined() ? average_.data() + piece.offset : nullptr;
  T* momentum = momentum_.defined() ? momentum_.data() + piece.offset : nullptr;
  ops::rmsprop(piece.values, piece.gradients, square_average_.data() + piece.offset, average, momentum, piece.count, step, D{});
}

template <typename P, typename D>
Settings Rmsprop<P, D>::settings() const {
  return this->settings_of("RMSprop", {{"smoothing", options_.smoothing},
                                       {"epsilon", options_.epsilon},
                                       {"momentum", options_.momentum},
                                       {"centered", options_.centered ? 1 : 0}});
}

#define TRIREME_INSTANTIATE(P) template class Rmsprop<P, TRIREME_DEVICE>;
TRIREME_EACH_POLICY(TRIREME_INSTANTIATE)
#undef TRIREME_INSTANTIATE

}  // namespace trireme::optim
