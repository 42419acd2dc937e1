#pragma once

#include <cmath>
#include <cstdint>

#include "trireme/core/export.hpp"
#include "trireme/math/exponential.hpp"
#include "trireme/ops/update/planes.hpp"
#include "trireme/ops/update/step_scalars.hpp"

// The formula of an optimizer is a struct template in a header beside this one: NameUpdate<T> holds the scalars of a step,
// rounded to the element type, and updates one element. The loops of the CPU and the kernels of a GPU are generated from this
// struct.
//
//   using Step = NameStep;                       the options of a step: on_device, and the fields that resolved() reads
//   using Planes = ops::Planes<const T, T, ...>; the planes of gradient, weight and state
//   explicit NameUpdate(const NameStep& step);
//   void operator()(const T& gradient, T& weight, ...) const;
//
// A plane of Optional<T> may be null: then the formula gets NotKept. lacking(step, planes) returns the name of a null plane
// that the step needs, or null if none is missing.
namespace trireme TRIREME_EXPORT {
namespace ops {

TRIREME_HOST_DEVICE bool is_skipped(const StepOnDevice& step) { return step.scalars != nullptr && step.scalars->skipped; }

// The step, combined with the numbers that on_device points to.
template <typename Step>
TRIREME_HOST_DEVICE Step resolved(Step step) {
  const auto [scalars, updates] = step.on_device;
  if (scalars == nullptr) return step;
  if constexpr (requires { step.gradient_scale; }) step.gradient_scale *= scalars->gradient_scale;
  if constexpr (requires { step.learning_rate; }) step.learning_rate *= scalars->learning_rate;
  if constexpr (requires { step.update; }) step.update = *updates;
  return step;
}

// 1 - beta^updates: the factor by which a moving average that started at 0 is too small.
TRIREME_HOST_DEVICE double bias_correction(double beta, std::int64_t updates) {
  return 1 - std::pow(beta, static_cast<double>(updates));
}

template <typename T>
struct Moments {
  T beta1;
  T one_minus_beta1;
  T beta2;
  T one_minus_beta2;

  template <typename Step>
  TRIREME_HOST_DEVICE explicit Moments(const Step& step)
      : beta1(static_cast<T>(step.beta1)),
        one_minus_beta1(static_cast<T>(1 - step.beta1)),
        beta2(static_cast<T>(step.beta2)),
        one_minus_beta2(static_cast<T>(1 - step.beta2)) {}

  TRIREME_HOST_DEVICE void move(T g, T& first, T& second) const {
    first = beta1 * first + one_minus_beta1 * g;
    second = beta2 * second + one_minus_beta2 * (g * g);
  }
};

}  // namespace ops
}  // namespace trireme
