#include "trireme/optim/adagrad.hpp"

#include "precision/each_policy.hpp"
#include "trireme/core/error.hpp"
#include "trireme/ops/update/optimizer.hpp"

namespace trireme::optim {

template <typename P, typename D>
Adagrad<P, D>::Adagrad(FlatStore& store, const AdagradOptions& options)
    : Optimizer<P, D>(store, {options.learning_rate, options.weight_decay, options.decay, options.groups}),
      options_(options),
      sum_of_squares_(this->make_plane("sum", options.initial_sum)) {
  require(options.learning_rate_decay >= 0 && options.epsilon >= 0 && options.initial_sum >= 0,
          "Adagrad's learning_rate_decay, epsilon and initial_sum are 0 or more, got {}, {} and {}",
          options.learning_rate_decay, options.epsilon, options.initial_sum);
}

template <typename P, typename D>
void Adagrad<P, D>::update(const typename Optimizer<P, D>::Piece& piece) {
  const ops::AdagradStep step{.learning_rate = piece.learning_rate,
                              .learning_rate_decay = options_.learning_rate_decay,
                              .epsilon = options_.epsilon,
                              .weight_decay = piece.weight_decay,
                              .update = piece.step,
                              .gradient_scale = piece.gradient_scale,
                              .on_device = piece.on_device};
  ops::adagrad(piece.values, piece.gradients, sum_of_squares_.data() + piece.offset, piece.count, step, D{});
}

template <typename P, typename D>
Settings Adagrad<P, D>::settings() const {
  return this->settings_of("Adagrad", {{"learning_rate_decay", options_.learning_rate_decay},
                                       {"epsilon", options_.epsilon},
                                       {"initial_sum", options_.initial_sum}});
}

#define TRIREME_INSTANTIATE(P) template class Adagrad<P, TRIREME_DEVICE>;
TRIREME_EACH_POLICY(TRIREME_INSTANTIATE)
#undef TRIREME_INSTANTIATE

}  // namespace trireme::optim
