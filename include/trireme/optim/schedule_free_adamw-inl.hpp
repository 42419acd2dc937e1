#pragma once

#include <array>
#include <cstddef>

#include "trireme/core/export.hpp"
#include "trireme/ops/update/optimizer.hpp"
#include "trireme/ops/update/scaled_sum.hpp"
#include "trireme/ops/update/schedule_free_adamw.hpp"
#include "trireme/optim/schedule_free_adamw.hpp"

namespace trireme TRIREME_EXPORT {
namespace optim {

template <typename P, typename D>
ScheduleFreeAdamW<P, D>::ScheduleFreeAdamW(Model& model, const ScheduleFreeAdamWOptions& options)
    : Optimizer<P, D>(
          model, {options.learning_rate, options.weight_decay, options.decay, options.groups, options.beta1, options.beta2}),
      store_(model.store()),
      options_(options),
      offset_(this->add_plane("offset")),
      second_moment_(this->add_plane("exp_avg_sq")) {
  require(options.beta1 > 0 && options.beta1 < 1 && options.beta2 >= 0 && options.beta2 < 1,
          "schedule-free AdamW's beta1 lies in (0, 1) and its beta2 in [0, 1), got {} and {}", options.beta1, options.beta2);
  for (const ParameterGroup& group : options.groups) {
    require(group.beta1.value_or(options.beta1) > 0,
            "schedule-free AdamW's beta1 of the parameter group \"{}\" is above 0, got 0", group.pattern);
  }
  require(options.epsilon >= 0 && options.warmup >= 0, "schedule-free AdamW's epsilon and warmup are 0 or more, got {} and {}",
          options.epsilon, options.warmup);
}

template <typename P, typename D>
void ScheduleFreeAdamW<P, D>::require_trained_values() const {
  require(!swapped_in(),
          "schedule-free AdamW can't step or be saved while its average is swapped into the model; call swap() first");
}

template <typename P, typename D>
void ScheduleFreeAdamW<P, D>::swap() {
  const Range trained{0, store_.trainable_numel()};
  const std::size_t bytes = static_cast<std::size_t>(trained.count()) * sizeof(T);
  T* values = store_.template values<T, D>().data();
  if (swapped_in()) {
    store_.device().copy(values, kept_.data(), bytes);
    store_.refresh_compute_copy();
    kept_ = {};
    return;
  }
  Tensor<T, D> kept({trained.count()});
  store_.device().copy(kept.data(), values, bytes);
  this->rewrite_values([this](const Piece& piece) {
    ops::update_elements<ops::ScaledSumUpdate<T>>({.x_factor = 1 - 1 / piece.beta1}, piece.count,
                                                  {piece.plane(offset_), piece.values}, D{});
  });
  kept_ = std::move(kept);
}

template <typename P, typename D>
void ScheduleFreeAdamW<P, D>::update(const Piece& piece) {
  const ops::ScheduleFreeAdamWStep step{.learning_rate = piece.learning_rate,
                                        .beta1 = piece.beta1,
                                        .beta2 = piece.beta2,
                                        .epsilon = options_.epsilon,
                                        .weight_decay = piece.weight_decay,
                                        .warmup = options_.warmup,
                                        .update = piece.step,
                                        .gradient_scale = piece.gradient_scale,
                                        .on_device = piece.on_device};
  ops::update_elements<ops::ScheduleFreeAdamWUpdate<T>>(
      step, piece.count, {piece.gradients, piece.values, piece.plane(offset_), piece.plane(second_moment_)}, D{});
}

template <typename P, typename D>
Settings ScheduleFreeAdamW<P, D>::settings() const {
  return this->settings_of("ScheduleFreeAdamW", {{"beta1", options_.beta1},
                                                 {"beta2", options_.beta2},
                                                 {"epsilon", options_.epsilon},
                                                 {"warmup", static_cast<double>(options_.warmup)}});
}

}  // namespace optim
}  // namespace trireme
