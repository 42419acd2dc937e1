#include "trireme/optim/lars.hpp"

#include "precision/each_policy.hpp"
#include "trireme/core/error.hpp"
#include "trireme/ops/update/optimizer.hpp"

namespace trireme::optim {

template <typename P, typename D>
Lars<P, D>::Lars(FlatStore& store, const LarsOptions& options)
    : Optimizer<P, D>(store, {options.learning_rate, options.weight_decay, options.decay, options.groups},
                      Needs::parameter_norms),
      options_(options),
      momentum_(this->make_plane("momentum_buffer")) {
  require(options.momentum >= 0 && options.trust > 0, "LARS' momentum is 0 or more and its trust above 0, got {} and {}",
          options.momentum, options.trust);
}

template <typename P, typename D>
void Lars<P, D>::measure(const typename Optimizer<P, D>::Piece& piece) {
  if (piece.adapts) ops::lars_squares<T>(piece.values, piece.gradients, piece.count, piece.squares, D{});
}

template <typename P, typename D>
void Lars<P, D>::update(const typename Optimizer<P, D>::Piece& piece) {
  const ops::LarsStep step{.learning_rate = piece.learning_rate,
                           .momentum = options_.momentum,
                           .weight_decay = piece.weight_decay,
                           .gradient_scale = piece.gradient_scale,
                           .trust = options_.trust,
                           .squares = piece.adapts ? piece.squares : nullptr,
                           .on_device = piece.on_device};
  ops::lars(piece.values, piece.gradients, momentum_.data() + piece.offset, piece.count, step, D{});
}

template <typename P, typename D>
Settings Lars<P, D>::settings() const {
  return this->settings_of("LARS", {{"momentum", options_.momentum}, {"trust", options_.trust}});
}

#define TRIREME_INSTANTIATE(P) template class Lars<P, TRIREME_DEVICE>;
TRIREME_EACH_POLICY(TRIREME_INSTANTIATE)
#undef TRIREME_INSTANTIATE

}  // namespace trireme::optim
