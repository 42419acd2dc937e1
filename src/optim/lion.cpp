#include "trireme/optim/lion.hpp"

#include "precision/each_policy.hpp"
#include "trireme/core/error.hpp"
#include "trireme/ops/update/optimizer.hpp"

namespace trireme::optim {

template <typename P, typename D>
Lion<P, D>::Lion(FlatStore& store, const LionOptions& options)
    : Optimizer<P, D>(store, {options.learning_rate, options.weight_decay, options.decay, options.groups}),
      options_(options),
      momentum_(this->make_plane("exp_avg")) {
  require(options.beta1 >= 0 && options.beta1 < 1 && options.beta2 >= 0 && options.beta2 < 1,
          "Lion's betas lie in [0, 1), got {} and {}", options.beta1, options.beta2);
}

template <typename P, typename D>
void Lion<P, D>::update(const typename Optimizer<P, D>::Piece& piece) {
  const ops::LionStep step{.learning_rate = piece.learning_rate,
                           .beta1 = options_.beta1,
                           .beta2 = options_.beta2,
                           .weight_decay = piece.weight_decay,
                           .gradient_scale = piece.gradient_scale,
                           .on_device = piece.on_device};
  ops::lion(piece.values, piece.gradients, momentum_.data() + piece.offset, piece.count, step, D{});
}

template <typename P, typename D>
Settings Lion<P, D>::settings() const {
  return this->settings_of("Lion", {{"beta1", options_.beta1}, {"beta2", options_.beta2}});
}

#define TRIREME_INSTANTIATE(P) template class Lion<P, TRIREME_DEVICE>;
TRIREME_EACH_POLICY(TRIREME_INSTANTIATE)
#undef TRIREME_INSTANTIATE

}  // namespace trireme::optim
