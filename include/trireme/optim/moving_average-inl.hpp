#pragma once

#include <algorithm>
#include <array>
#include <cstddef>

#include "trireme/core/error.hpp"
#include "trireme/core/export.hpp"
#include "trireme/ops/update/move_average.hpp"
#include "trireme/ops/update/optimizer.hpp"
#include "trireme/optim/moving_average.hpp"

namespace trireme TRIREME_EXPORT {
namespace optim {

template <typename P, typename D>
ExponentialMovingAverage<P, D>::ExponentialMovingAverage(Model& model, const MovingAverageOptions& options)
    : store_(model.store()),
      options_(options),
      planes_(store_),
      average_(planes_.add(store_, "average", {.dtype = dtype_of<T>, .extent = Extent::trainable})) {
  require(options.decay >= 0 && options.decay < 1, "a moving average's decay lies in [0, 1), got {}", options.decay);
}

// Copies the values late, because the model may get its values after this object was made.
template <typename P, typename D>
void ExponentialMovingAverage<P, D>::begin() const {
  if (updates_ > 0 || swapped_in_) return;
  visit([this](const T* values, T* average, std::size_t count) { store_.device().copy(average, values, count * sizeof(T)); });
}

template <typename P, typename D>
auto ExponentialMovingAverage<P, D>::average() const -> Tensor<T, D> {
  begin();
  return store_.template elements<T, D>(average_);
}

template <typename P, typename D>
template <typename Action>
void ExponentialMovingAverage<P, D>::visit(const Action& action) const {
  const Range trained{0, store_.trainable_numel()};
  store_.visit(std::array{FlatStore::values_number, average_}, std::span(&trained, 1), [&](const FlatStore::Piece& piece) {
    action(static_cast<T*>(piece.elements[0]), static_cast<T*>(piece.elements[1]),
           static_cast<std::size_t>(piece.range.count()));
  });
}

template <typename P, typename D>
void ExponentialMovingAverage<P, D>::update() {
  require(!swapped_in_, "a moving average was updated while it is swapped into the model; call swap() first");
  begin();
  if (++updates_ == 1) return;
  const auto update = static_cast<double>(updates_);
  const double decay = options_.warms_up ? std::min(options_.decay, (1 + update) / (10 + update)) : options_.decay;
  visit([&](const T* values, T* average, std::size_t count) {
    ops::update_elements<ops::AverageUpdate<T>>({.rate = 1 - decay}, count, {values, average}, D{});
  });
}

template <typename P, typename D>
void ExponentialMovingAverage<P, D>::add_to(State& state, const std::string& prefix) {
  const auto check = [this] {
    require(!swapped_in_, "a moving average can't be saved or loaded while it is swapped into the model; call swap() first");
  };
  check();
  void* place = store_.list_plane(state, average_);
  state.before_use([this, check] {
    check();
    begin();
  });
  state.add(prefix + "updates", &updates_);
  for (int index = 0; index < store_.num_parameters(); ++index) {
    const ParameterInfo& parameter = store_.parameter(index);
    if (!parameter.trainable) continue;
    state.add(store_.listed(prefix + parameter.name, average_, place, index));
  }
}

template <typename P, typename D>
void ExponentialMovingAverage<P, D>::swap() {
  begin();
  visit([this](T* values, T* average, std::size_t count) {
    const Tensor<T, D> kept({static_cast<std::int64_t>(count)});
    const std::size_t bytes = count * sizeof(T);
    store_.device().copy(kept.data(), average, bytes);
    store_.device().copy(average, values, bytes);
    store_.device().copy(values, kept.data(), bytes);
  });
  store_.refresh_compute_copy();
  swapped_in_ = !swapped_in_;
}

}  // namespace optim
}  // namespace trireme
