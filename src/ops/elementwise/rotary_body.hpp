#pragma once

#include <cmath>

#include "ops/base/pack.hpp"
#include "trireme/ops/elementwise/rotary_scaling.hpp"

// The rotation of ops/elementwise/rotary.hpp.
namespace trireme::ops {

// The index, a real number, of the element of a head that makes `turns` full turns over the trained positions.
TRIREME_HOST_DEVICE double element_of_turns(double turns, const RotaryScaling& scaling, double base, std::int64_t size) {
  constexpr double circle = 6.283185307179586;
  return static_cast<double>(size) * ::log(scaling.trained_positions / (turns * circle)) / (2 * ::log(base));
}

// How much of the factor yarn applies to element j of a head, in [0, 1].
TRIREME_HOST_DEVICE double yarn_share(const RotaryScaling& scaling, double base, std::int64_t size, std::int64_t j) {
  double first = element_of_turns(scaling.beta_fast, scaling, base, size);
  double last = element_of_turns(scaling.beta_slow, scaling, base, size);
  if (scaling.truncate) {
    first = ::floor(first);
    last = ::ceil(last);
  }
  first = ::fmax(first, 0.0);
  last = ::fmin(last, static_cast<double>(size - 1));
  if (first == last) last += 0.001;
  return ::fmin(::fmax((static_cast<double>(j) - first) / (last - first), 0.0), 1.0);
}

// The same for llama3, for an element that is rotated by `frequency` from one position to the next.
TRIREME_HOST_DEVICE double llama3_share(const RotaryScaling& scaling, double frequency) {
  constexpr double circle = 6.283185307179586;
  const double turns = scaling.trained_positions * frequency / circle;
  if (scaling.high_frequency == scaling.low_frequency) return turns < scaling.low_frequency ? 1 : 0;
  const double unscaled = (turns - scaling.low_frequency) / (scaling.high_frequency - scaling.low_frequency);
  return 1 - ::fmin(::fmax(unscaled, 0.0), 1.0);
}

// The angle by which elements j and j + size / 2 of a head are rotated from one position to the next.
TRIREME_HOST_DEVICE double rotary_frequency(const RotaryScaling& scaling, double base, std::int64_t size, std::int64_t j) {
  const double frequency = ::pow(base, -2.0 * static_cast<double>(j) / static_cast<double>(size));
  double share = 0;  // of the factor
  switch (scaling.kind) {
    case RotaryScalingKind::none: break;
    case RotaryScalingKind::linear: share = 1; break;
    case RotaryScalingKind::llama3: share = llama3_share(scaling, frequency); break;
    case RotaryScalingKind::yarn: share = yarn_share(scaling, base, size, j); break;
  }
  return frequency * (1 - share) + frequency / scaling.factor * share;
}

// Computes element i of cosines and sines [time, half].
template <typename A>
struct RotaryAngles {
  std::int64_t half;  // of a head
  std::int64_t first_position;
  double base;
  double direction;
  A* cosines;
  A* sines;
  RotaryScaling scaling = {};

  TRIREME_TEAM void operator()(std::int64_t i) const {
    const std::int64_t place = first_position + i / half;
    const auto position = static_cast<float>(place);
    const auto frequency = static_cast<float>(rotary_frequency(scaling, base, 2 * half, i % half));
    const auto angle = static_cast<double>(position * frequency);
    const double factor = scaling.kind == RotaryScalingKind::yarn ? scaling.attention_factor : 1;
    cosines[i] = static_cast<A>(factor * ::cos(angle));
    sines[i] = static_cast<A>(factor * direction * ::sin(angle));
  }
};

template <typename T>
struct RotaryRows {
  const Accumulate<T>* cosines;
  const Accumulate<T>* sines;
  std::int64_t half;
  std::int64_t heads;
  std::int64_t time;
  std::int64_t width;
  const T* x;
  T* y;
  const std::int32_t* starts = nullptr;  // [rows], index in its sequence at which a row's document starts; may be null
};

// A team for each row [width]: its heads are rotated, the rest is copied. y may be x.
template <int Width, typename T>
struct RotateRow {
  using A = Accumulate<T>;

  RotaryRows<T> rows;

  template <typename Team>
  TRIREME_TEAM void operator()(const Team& team, std::int64_t row) const {
    const std::int64_t half = rows.half;
    const std::int64_t position = row % rows.time - (rows.starts == nullptr ? 0 : rows.starts[row]);
    const T* from = rows.x + row * rows.width;
    T* to = rows.y + row * rows.width;
    each_pack<Width>(team, rows.heads * half, [&](std::int64_t i) {
      const std::int64_t j = i % half;
      const std::int64_t place = i / half * 2 * half + j;
      const std::int64_t angle = position * half + j;
      const auto cosine = load<Width>(rows.cosines + angle);
      const auto sine = load<Width>(rows.sines + angle);
      const auto first = load<Width>(from + place);
      const auto second = load<Width>(from + place + half);
      Pack<A, Width> turned_first, turned_second;
      for (int k = 0; k < Width; ++k) {
        turned_first.at[k] = first.at[k] * cosine.at[k] - second.at[k] * sine.at[k];
        turned_second.at[k] = second.at[k] * cosine.at[k] + first.at[k] * sine.at[k];
      }
      store<Width>(to + place, turned_first);
      store<Width>(to + place + half, turned_second);
    });
    if (from == to) return;
    const std::int64_t rotated = 2 * rows.heads * half;
    each_pack<Width>(team, rows.width - rotated,
                     [&](std::int64_t j) { store<Width>(to + rotated + j, load<Width>(from + rotated + j)); });
  }
};

}  // namespace trireme::ops
