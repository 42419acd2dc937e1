#pragma once

#include <algorithm>

#include "trireme/core/error.hpp"
#include "trireme/ops/update/move_average.hpp"
#include "trireme/ops/update/optimizer.hpp"
#include "trireme/optim/moving_average.hpp"

namespace trireme::optim {

template <typename P, typename D>
ExponentialMovingAverage<P, D>::ExponentialMovingAverage(FlatStore& store, const MovingAverageOptions& options)
    : store_(store), options_(options), average_(trained_values().clone()) {
  require(options.decay >= 0 && options.decay < 1, "a moving average's decay lies in [0, 1), got {}", options.decay);
}

template <typename P, typename D>
auto ExponentialMovingAverage<P, D>::trained_values() const -> Tensor<T, D> {
  return store_.values<T, D>().narrow(0, store_.trainable_numel());
}

template <typename P, typename D>
void ExponentialMovingAverage<P, D>::update() {
  require(!swapped_in_, "a moving average was updated while its values are the model's; call swap() first");
  ++updates_;
  const auto update = static_cast<double>(updates_);
  const double decay = options_.warms_up ? std::min(options_.decay, (1 + update) / (10 + update)) : options_.decay;
  ops::update_elements<ops::AverageUpdate<T>>({.rate = 1 - decay}, static_cast<std::size_t>(average_.numel()),
                                              {trained_values().data(), average_.data()}, D{});
}

template <typename P, typename D>
void ExponentialMovingAverage<P, D>::add_to(State& state, const std::string& prefix) {
  const auto check = [this] {
    require(!swapped_in_, "a moving average was to be saved or loaded while its values are the model's; call swap() first");
  };
  check();
  state.before_use(check);
  state.add(prefix + "updates", &updates_);
  const std::size_t bytes = static_cast<std::size_t>(average_.numel()) * sizeof(T);
  T* listed = static_cast<T*>(store_.device().listed(state, average_.data(), bytes));
  for (int index = 0; index < store_.num_parameters(); ++index) {
    const ParameterInfo& parameter = store_.parameter(index);
    if (!parameter.trainable) continue;
    state.add({.name = prefix + parameter.name,
               .dtype = dtype_of<T>,
               .shape = parameter.placement.shape,
               .pieces = store_.pieces(index, {0, average_.numel()}, listed)});
  }
}

template <typename P, typename D>
void ExponentialMovingAverage<P, D>::swap() {
  const Tensor<T, D> average = average_.clone();
  const Tensor<T, D> values = trained_values();
  const std::size_t bytes = static_cast<std::size_t>(average.numel()) * sizeof(T);
  store_.device().copy(average_.data(), values.data(), bytes);
  store_.device().copy(values.data(), average.data(), bytes);
  store_.refresh_compute_copy();
  swapped_in_ = !swapped_in_;
}

}  // namespace trireme::optim
