#include "trireme/optim/adamw.hpp"

#include <fmt/format.h>

#include <cmath>

#include "trireme/core/error.hpp"
#include "trireme/ops/optimizer.hpp"

namespace trireme::optim {

template <typename P, typename D>
AdamW<P, D>::AdamW(FlatStore& store, const AdamWOptions& options)
    : Optimizer<P, D>(store, options.learning_rate, options.decay),
      options_(options),
      first_moment_(this->make_plane()),
      second_moment_(this->make_plane()) {
  require(options.beta1 >= 0 && options.beta1 < 1 && options.beta2 >= 0 && options.beta2 < 1,
          "AdamW's betas lie in [0, 1), got {} and {}", options.beta1, options.beta2);
  require(options.epsilon >= 0 && options.weight_decay >= 0, "AdamW's epsilon and weight_decay are 0 or more, got {} and {}",
          options.epsilon, options.weight_decay);
}

template <typename P, typename D>
void AdamW<P, D>::update(const typename Optimizer<P, D>::Run& run) {
  const ops::AdamWStep step{.learning_rate = run.learning_rate,
                            .beta1 = options_.beta1,
                            .beta2 = options_.beta2,
                            .epsilon = options_.epsilon,
                            .weight_decay = run.decays ? options_.weight_decay : 0,
                            .bias_correction1 = 1 - std::pow(options_.beta1, static_cast<double>(run.step)),
                            .bias_correction2 = 1 - std::pow(options_.beta2, static_cast<double>(run.step)),
                            .gradient_scale = run.gradient_scale};
  ops::adamw(run.values, run.gradients, first_moment_.data() + run.offset, second_moment_.data() + run.offset, run.count, step,
             D{});
}

template <typename P, typename D>
Settings AdamW<P, D>::settings() const {
  return {{"optimizer", "AdamW"},
          {"learning_rate", fmt::format("{}", this->learning_rate())},
          {"beta1", fmt::format("{}", options_.beta1)},
          {"beta2", fmt::format("{}", options_.beta2)},
          {"epsilon", fmt::format("{}", options_.epsilon)},
          {"weight_decay", fmt::format("{}", options_.weight_decay)},
          {"decay", options_.decay == Decay::all ? "all" : "matrices"}};
}

template class AdamW<Float32, Cpu>;
template class AdamW<Float64, Cpu>;

}  // namespace trireme::optim
