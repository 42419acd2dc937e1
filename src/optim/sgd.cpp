#include "trireme/optim/sgd.hpp"

#include <fmt/format.h>

#include "trireme/core/error.hpp"
#include "trireme/ops/optimizer.hpp"

namespace trireme::optim {

template <typename P, typename D>
Sgd<P, D>::Sgd(FlatStore& store, const SgdOptions& options)
    : Optimizer<P, D>(store, options.learning_rate, options.decay), options_(options) {
  require(options.momentum >= 0 && options.weight_decay >= 0, "SGD's momentum and weight_decay are 0 or more, got {} and {}",
          options.momentum, options.weight_decay);
  require(!options.nesterov || (options.momentum > 0 && options.dampening == 0),
          "Nesterov momentum needs a momentum above 0 and no dampening, got {} and {}", options.momentum, options.dampening);
  if (options.momentum > 0) momentum_ = this->make_plane();
}

template <typename P, typename D>
void Sgd<P, D>::update(const typename Optimizer<P, D>::Run& run) {
  const ops::SgdStep step{.learning_rate = run.learning_rate,
                          .momentum = options_.momentum,
                          .dampening = options_.dampening,
                          .weight_decay = run.decays ? options_.weight_decay : 0,
                          .nesterov = options_.nesterov,
                          .first = run.step == 1,
                          .gradient_scale = run.gradient_scale};
  T* momentum = momentum_.defined() ? momentum_.data() + run.offset : nullptr;
  ops::sgd(run.values, run.gradients, momentum, run.count, step, D{});
}

template <typename P, typename D>
Settings Sgd<P, D>::settings() const {
  return {{"optimizer", "SGD"},
          {"learning_rate", fmt::format("{}", this->learning_rate())},
          {"momentum", fmt::format("{}", options_.momentum)},
          {"dampening", fmt::format("{}", options_.dampening)},
          {"weight_decay", fmt::format("{}", options_.weight_decay)},
          {"nesterov", options_.nesterov ? "true" : "false"},
          {"decay", options_.decay == Decay::all ? "all" : "matrices"}};
}

template class Sgd<Float32, Cpu>;
template class Sgd<Float64, Cpu>;

}  // namespace trireme::optim
