#include "trireme/optim/lars.hpp"

#include "trireme/core/error.hpp"
#include "trireme/ops/optimizer.hpp"
#include "trireme/ops/reduce.hpp"

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
auto Lars<P, D>::measure(const typename Optimizer<P, D>::Run& run) -> typename Optimizer<P, D>::SumsOfSquares {
  if (!run.adapts) return {};
  const double scale = run.gradient_scale;
  return {.weight = ops::sum_of_squares<T>(run.values, run.count, D{}).item(),
          .update = scale * scale * ops::sum_of_squares(run.gradients, run.count, D{}).item()};
}

template <typename P, typename D>
void Lars<P, D>::update(const typename Optimizer<P, D>::Run& run) {
  const auto& [weight, gradient] = run.norms;
  const bool adapts = run.adapts && weight > 0 && gradient > 0;
  const double local = adapts ? options_.trust * weight / (gradient + run.weight_decay * weight) : 1;
  const ops::LarsStep step{.learning_rate = run.learning_rate * local,
                           .momentum = options_.momentum,
                           .weight_decay = run.weight_decay,
                           .gradient_scale = run.gradient_scale};
  ops::lars(run.values, run.gradients, momentum_.data() + run.offset, run.count, step, D{});
}

template <typename P, typename D>
Settings Lars<P, D>::settings() const {
  return this->settings_of("LARS", {{"momentum", options_.momentum}, {"trust", options_.trust}});
}

template class Lars<Float32, TRIREME_DEVICE>;
template class Lars<Float64, TRIREME_DEVICE>;
template class Lars<MixedBfloat16, TRIREME_DEVICE>;
template class Lars<MixedFloat16, TRIREME_DEVICE>;

}  // namespace trireme::optim
