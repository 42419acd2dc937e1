#pragma once

#include <cmath>

#include "ops/base/pack.hpp"

// The rotation of ops/rotary.hpp.
namespace trireme::ops {

// Of cosines and sines [time, half] the element i.
template <typename A>
struct RotaryAngles {
  std::int64_t half;  // of a head
  std::int64_t first_position;
  double base;
  double direction;
  A* cosines;
  A* sines;

  TRIREME_TEAM void operator()(std::int64_t i) const {
    const auto position = static_cast<double>(first_position + i / half);
    const double angle = position * ::pow(base, -2.0 * static_cast<double>(i % half) / static_cast<double>(2 * half));
    cosines[i] = static_cast<A>(::cos(angle));
    sines[i] = static_cast<A>(direction * ::sin(angle));
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
};

// A team for each row [width]: its heads are rotated, the rest is copied. y may be x.
template <int Width, typename T>
struct RotateRow {
  using A = Accumulate<T>;

  RotaryRows<T> rows;

  template <typename Team>
  TRIREME_TEAM void operator()(const Team& team, std::int64_t row) const {
    const std::int64_t half = rows.half;
    const T* from = rows.x + row * rows.width;
    T* to = rows.y + row * rows.width;
    each_pack<Width>(team, rows.heads * half, [&](std::int64_t i) {
      const std::int64_t j = i % half;
      const std::int64_t place = i / half * 2 * half + j;
      const std::int64_t angle = row % rows.time * half + j;
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
