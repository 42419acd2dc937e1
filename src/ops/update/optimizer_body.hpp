#pragma once

#include <cmath>

#include "trireme/math/exponential.hpp"
#include "trireme/ops/update/optimizer_options.hpp"

// The optimizers' updates of one element: update(gradient, weight, state...) with the scalars of the step, rounded to the
// element type once.
namespace trireme::ops {

TRIREME_HOST_DEVICE bool is_skipped(const StepOnDevice& step) { return step.scalars != nullptr && step.scalars->skipped; }

// The step with what is read of it where it runs.
template <typename Step>
TRIREME_HOST_DEVICE Step resolved(Step step) {
  const auto [scalars, updates] = step.on_device;
  if (scalars == nullptr) return step;
  step.gradient_scale *= scalars->gradient_scale;
  if constexpr (requires { step.learning_rate; }) step.learning_rate *= scalars->learning_rate;
  if constexpr (requires { step.update; }) step.update = *updates;
  return step;
}

// What a moving average with this beta, begun at zero, is too small by after so many updates.
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

template <typename T>
struct AdamUpdate {
  T gradient_scale;
  T gradient_decay;  // weight decay that is added to the gradient
  Moments<T> moments;
  T weight_factor;                  // 1 - learning_rate * weight_decay, where that is decoupled
  T step_size;                      // learning_rate / bias_correction1
  T inverse_root_bias_correction2;  // 1 / sqrt(bias_correction2)
  T epsilon;

  TRIREME_HOST_DEVICE explicit AdamUpdate(const AdamStep& step)
      : gradient_scale(static_cast<T>(step.gradient_scale)),
        gradient_decay(static_cast<T>(step.decoupled ? 0 : step.weight_decay)),
        moments(step),
        weight_factor(static_cast<T>(step.decoupled ? 1 - step.learning_rate * step.weight_decay : 1)),
        step_size(static_cast<T>(step.learning_rate / bias_correction(step.beta1, step.update))),
        inverse_root_bias_correction2(static_cast<T>(1 / std::sqrt(bias_correction(step.beta2, step.update)))),
        epsilon(static_cast<T>(step.epsilon)) {}

  TRIREME_HOST_DEVICE void operator()(const T& gradient, T& weight, T& first_moment, T& second_moment) const {
    T first = first_moment;
    T second = second_moment;
    moments.move(gradient_scale * gradient + gradient_decay * weight, first, second);
    first_moment = first;
    second_moment = second;
    weight = moved(weight, first, second);
  }
  // AMSGrad.
  TRIREME_HOST_DEVICE void operator()(const T& gradient, T& weight, T& first_moment, T& second_moment, T& largest) const {
    T first = first_moment;
    T second = second_moment;
    moments.move(gradient_scale * gradient + gradient_decay * weight, first, second);
    first_moment = first;
    second_moment = second;
    second = largest > second ? largest : second;
    largest = second;
    weight = moved(weight, first, second);
  }

 private:
  TRIREME_HOST_DEVICE T moved(T weight, T first, T second) const {
    return weight_factor * weight - step_size * first / (math::square_root(second) * inverse_root_bias_correction2 + epsilon);
  }
};

template <typename T>
struct SgdUpdate {
  T gradient_scale;
  T weight_decay;
  T momentum;
  T one_minus_dampening;
  T learning_rate;
  bool nesterov;
  bool first;

  TRIREME_HOST_DEVICE explicit SgdUpdate(const SgdStep& step)
      : gradient_scale(static_cast<T>(step.gradient_scale)),
        weight_decay(static_cast<T>(step.weight_decay)),
        momentum(static_cast<T>(step.momentum)),
        one_minus_dampening(static_cast<T>(1 - step.dampening)),
        learning_rate(static_cast<T>(step.learning_rate)),
        nesterov(step.nesterov),
        first(step.update == 1) {}

  TRIREME_HOST_DEVICE void operator()(const T& gradient, T& weight) const {
    weight -= learning_rate * (gradient_scale * gradient + weight_decay * weight);
  }
  TRIREME_HOST_DEVICE void operator()(const T& gradient, T& weight, T& buffer) const {
    const T direction = gradient_scale * gradient + weight_decay * weight;
    const T velocity = first ? direction : momentum * buffer + one_minus_dampening * direction;
    buffer = velocity;
    weight -= learning_rate * (nesterov ? direction + momentum * velocity : velocity);
  }
};

template <typename T>
struct RmspropUpdate {
  T gradient_scale;
  T weight_decay;
  T smoothing;
  T one_minus_smoothing;
  T epsilon;
  T momentum;
  T learning_rate;

  TRIREME_HOST_DEVICE explicit RmspropUpdate(const RmspropStep& step)
      : gradient_scale(static_cast<T>(step.gradient_scale)),
        weight_decay(static_cast<T>(step.weight_decay)),
        smoothing(static_cast<T>(step.smoothing)),
        one_minus_smoothing(static_cast<T>(1 - step.smoothing)),
        epsilon(static_cast<T>(step.epsilon)),
        momentum(static_cast<T>(step.momentum)),
        learning_rate(static_cast<T>(step.learning_rate)) {}

  TRIREME_HOST_DEVICE T decayed(T gradient, T weight) const { return gradient_scale * gradient + weight_decay * weight; }
  TRIREME_HOST_DEVICE T moved_square(T g, T& square_average) const {
    square_average = smoothing * square_average + one_minus_smoothing * (g * g);
    return square_average;
  }
  TRIREME_HOST_DEVICE T centered_variance(T g, T square, T& average) const {
    average = smoothing * average + one_minus_smoothing * g;
    const T variance = square - average * average;
    return variance < T(0) ? T(0) : variance;  // below by rounding
  }
  TRIREME_HOST_DEVICE T direction(T g, T variance) const { return g / (math::square_root(variance) + epsilon); }
};

// The four forms of RMSprop by what they keep.
template <typename T>
struct PlainRmsprop {
  RmspropUpdate<T> of;
  TRIREME_HOST_DEVICE void operator()(const T& gradient, T& weight, T& square_average) const {
    const T g = of.decayed(gradient, weight);
    weight -= of.learning_rate * of.direction(g, of.moved_square(g, square_average));
  }
};
template <typename T>
struct CenteredRmsprop {
  RmspropUpdate<T> of;
  TRIREME_HOST_DEVICE void operator()(const T& gradient, T& weight, T& square_average, T& average) const {
    const T g = of.decayed(gradient, weight);
    weight -= of.learning_rate * of.direction(g, of.centered_variance(g, of.moved_square(g, square_average), average));
  }
};
template <typename T>
struct MomentumRmsprop {
  RmspropUpdate<T> of;
  TRIREME_HOST_DEVICE void operator()(const T& gradient, T& weight, T& square_average, T& buffer) const {
    const T g = of.decayed(gradient, weight);
    buffer = of.momentum * buffer + of.direction(g, of.moved_square(g, square_average));
    weight -= of.learning_rate * buffer;
  }
};
template <typename T>
struct CenteredMomentumRmsprop {
  RmspropUpdate<T> of;
  TRIREME_HOST_DEVICE void operator()(const T& gradient, T& weight, T& square_average, T& average, T& buffer) const {
    const T g = of.decayed(gradient, weight);
    buffer = of.momentum * buffer + of.direction(g, of.centered_variance(g, of.moved_square(g, square_average), average));
    weight -= of.learning_rate * buffer;
  }
};

template <typename T>
struct AdagradUpdate {
  T gradient_scale;
  T weight_decay;
  T epsilon;
  T learning_rate;

  TRIREME_HOST_DEVICE explicit AdagradUpdate(const AdagradStep& step)
      : gradient_scale(static_cast<T>(step.gradient_scale)),
        weight_decay(static_cast<T>(step.weight_decay)),
        epsilon(static_cast<T>(step.epsilon)),
        learning_rate(
            static_cast<T>(step.learning_rate / (1 + static_cast<double>(step.update - 1) * step.learning_rate_decay))) {}

  TRIREME_HOST_DEVICE void operator()(const T& gradient, T& weight, T& sum_of_squares) const {
    const T g = gradient_scale * gradient + weight_decay * weight;
    const T sum = sum_of_squares + g * g;
    sum_of_squares = sum;
    weight -= learning_rate * g / (math::square_root(sum) + epsilon);
  }
};

template <typename T>
struct LionUpdate {
  T gradient_scale;
  Moments<T> moments;
  T weight_factor;  // 1 - learning_rate * weight_decay
  T learning_rate;

  TRIREME_HOST_DEVICE explicit LionUpdate(const LionStep& step)
      : gradient_scale(static_cast<T>(step.gradient_scale)),
        moments(step),
        weight_factor(static_cast<T>(1 - step.learning_rate * step.weight_decay)),
        learning_rate(static_cast<T>(step.learning_rate)) {}

  TRIREME_HOST_DEVICE void operator()(const T& gradient, T& weight, T& momentum) const {
    const T g = gradient_scale * gradient;
    const T direction = moments.beta1 * momentum + moments.one_minus_beta1 * g;
    const T rate = direction > T(0) ? learning_rate : -learning_rate;
    momentum = moments.beta2 * momentum + moments.one_minus_beta2 * g;
    weight = weight_factor * weight - (direction == T(0) ? T(0) : rate);
  }
};

// What the norms of a parameter multiply its rate by; 1 where a norm is 0.
TRIREME_HOST_DEVICE double trust_ratio(const LambStep& step) {
  if (step.squares == nullptr) return 1;
  const double norm = std::sqrt(step.squares->weight);
  const double weight = norm < step.min_norm ? step.min_norm : norm > step.max_norm ? step.max_norm : norm;
  const double update = std::sqrt(step.squares->update);
  const double ratio = weight > 0 && update > 0 ? weight / update : 1;
  return ratio > step.max_trust_ratio ? step.max_trust_ratio : ratio;
}
TRIREME_HOST_DEVICE double trust_ratio(const LarsStep& step) {
  if (step.squares == nullptr) return 1;
  const double weight = std::sqrt(step.squares->weight);
  const double gradient = std::sqrt(step.gradient_scale * step.gradient_scale * step.squares->update);
  return weight > 0 && gradient > 0 ? step.trust * weight / (gradient + step.weight_decay * weight) : 1;
}

template <typename T>
struct LambUpdate {
  T gradient_scale;
  Moments<T> moments;
  T inverse_bias_correction1;
  T inverse_root_bias_correction2;
  T epsilon;
  T weight_decay;
  T learning_rate;

  TRIREME_HOST_DEVICE explicit LambUpdate(const LambStep& step)
      : gradient_scale(static_cast<T>(step.gradient_scale)),
        moments(step),
        inverse_bias_correction1(static_cast<T>(1 / (step.corrects_bias ? bias_correction(step.beta1, step.update) : 1))),
        inverse_root_bias_correction2(
            static_cast<T>(1 / std::sqrt(step.corrects_bias ? bias_correction(step.beta2, step.update) : 1))),
        epsilon(static_cast<T>(step.epsilon)),
        weight_decay(static_cast<T>(step.weight_decay)),
        learning_rate(static_cast<T>(step.learning_rate * trust_ratio(step))) {}

  TRIREME_HOST_DEVICE T update(T weight, T first, T second) const {
    return first * inverse_bias_correction1 / (math::square_root(second) * inverse_root_bias_correction2 + epsilon) +
           weight_decay * weight;
  }
  // Moves the moments; the update is what the squares are of.
  TRIREME_HOST_DEVICE T measured(const T& gradient, const T& weight, T& first_moment, T& second_moment) const {
    T first = first_moment;
    T second = second_moment;
    moments.move(gradient_scale * gradient, first, second);
    first_moment = first;
    second_moment = second;
    return update(weight, first, second);
  }
  TRIREME_HOST_DEVICE void operator()(const T& first_moment, const T& second_moment, T& weight) const {
    weight -= learning_rate * update(weight, first_moment, second_moment);
  }
};

template <typename T>
struct LarsUpdate {
  T gradient_scale;
  T momentum;
  T weight_decay;
  T learning_rate;

  TRIREME_HOST_DEVICE explicit LarsUpdate(const LarsStep& step)
      : gradient_scale(static_cast<T>(step.gradient_scale)),
        momentum(static_cast<T>(step.momentum)),
        weight_decay(static_cast<T>(step.weight_decay)),
        learning_rate(static_cast<T>(step.learning_rate * trust_ratio(step))) {}

  TRIREME_HOST_DEVICE void operator()(const T& gradient, T& weight, T& buffer) const {
    const T velocity = momentum * buffer + learning_rate * (gradient_scale * gradient + weight_decay * weight);
    buffer = velocity;
    weight -= velocity;
  }
};

// To [-limit, limit]; nan stays nan.
template <typename T>
struct ClipByValue {
  T scale;
  T limit;

  TRIREME_HOST_DEVICE explicit ClipByValue(const ClipStep& step)
      : scale(static_cast<T>(step.gradient_scale)), limit(static_cast<T>(step.limit)) {}

  TRIREME_HOST_DEVICE void operator()(T& gradient) const {
    T g = scale * gradient;
    g = g > limit ? limit : g;
    gradient = g < -limit ? -limit : g;
  }
};

template <typename T>
struct MoveAverage {
  T rate;

  TRIREME_HOST_DEVICE void operator()(const T& value, T& average) const { average += rate * (value - average); }
};

}  // namespace trireme::ops
