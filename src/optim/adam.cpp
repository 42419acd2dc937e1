#include "trireme/optim/adam.hpp"

#include "precision/each_policy.hpp"
#include "trireme/core/error.hpp"
#include "trireme/ops/update/optimizer.hpp"

namespace trireme::optim {

template <typename P, typename D>
Adam<P, D>::Adam(FlatStore& store, const AdamOptions& options, bool decoupled)
    : Optimizer<P, D>(store, {options.learning_rate, options.weight_decay, options.decay, options.groups}),
      options_(options),
      decoupled_(decoupled),
      first_moment_(this->make_plane("exp_avg")),
      second_moment_(this->make_plane("exp_avg_sq")) {
  require(options.beta1 >= 0 && options.beta1 < 1 && options.beta2 >= 0 && options.beta2 < 1,
          "Adam's betas lie in [0, 1), got {} and {}", options.beta1, options.beta2);
  require(options.epsilon >= 0, "Adam's epsilon is 0 or more, got {}", options.epsilon);
  if (options.amsgrad) largest_ = this->make_plane("max_exp_avg_sq");
}

template <typename P, typename D>
void Adam<P, D>::update(const typename Optimizer<P, D>::Piece& piece) {
  const ops::AdamStep step{.learning_rate = piece.learning_rate,
                           .beta1 = options_.beta1,
                           .beta2 = options_.beta2,
                           .epsilon = options_.epsilon,
                           .weight_decay = piece.weight_decay,
                           .decoupled = decoupled_,
                           .update = piece.step,
                           .gradient_scale = options_.maximize ? -piece.gradient_scale : piece.gradient_scale,
                           .on_device = piece.on_device};
  T* largest = largest_.defined() ? largest_.data() + piece.offset : nullptr;
  ops::adam(piece.values, piece.gradients, first_moment_.data() + piece.offset, second_moment_.data() + piece.offset, largest,
            piece.count, step, D{});
}

template <typename P, typename D>
Settings Adam<P, D>::settings() const {
  return this->settings_of(decoupled_ ? "AdamW" : "Adam", {{"beta1", options_.beta1},
                                                           {"beta2", options_.beta2},
                                                           {"epsilon", options_.epsilon},
                                                           {"amsgrad", options_.amsgrad ? 1 : 0},
                                                           {"maximize", options_.maximize ? 1 : 0}});
}

#define TRIREME_INSTANTIATE(P) template class Adam<P, TRIREME_DEVICE>;
TRIREME_EACH_POLICY(TRIREME_INSTANTIATE)
#undef TRIREME_INSTANTIATE

}  // namespace trireme::optim
