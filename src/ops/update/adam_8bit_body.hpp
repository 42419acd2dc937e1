#pragma once

#include <limits>

#include "device/cuda/team.hpp"
#include "ops/update/dynamic_codes.hpp"
#include "trireme/ops/update/adam_8bit.hpp"

namespace trireme::ops {

// The moments of element `i` in `block` after the step, which moves its weight too.
template <typename T>
struct Moments8bit {
  T first;
  T second;

  TRIREME_HOST_DEVICE Moments8bit(const AdamUpdate<T>& update, const Adam8bitPlanes<T>& planes, float first_absmax,
                                  float second_absmax, std::int64_t i, T& weight)
      : first(static_cast<T>(SignedCodes::value<OneNumber>(planes.first_codes[i]) * first_absmax)),
        second(static_cast<T>(UnsignedCodes::value<OneNumber>(planes.second_codes[i]) * second_absmax)) {
    NotKept largest;
    update(planes.gradient[i], weight, first, second, largest);
  }
};

// Magnitudes that are kept are finite: an element that overflows does not make the others of its block nan.
TRIREME_HOST_DEVICE float finite_absmax(float largest) {
  constexpr float most = std::numeric_limits<float>::max();
  return largest < most ? largest : most;
}

// What a moment is multiplied by before it gets a code.
TRIREME_HOST_DEVICE float relative_to(float absmax) { return absmax > 0 ? finite_absmax(1 / absmax) : 0; }

TRIREME_HOST_DEVICE float magnitude_of(float x) { return x < 0 ? -x : x; }
TRIREME_HOST_DEVICE float larger(float a, float b) { return a > b ? a : b; }

// The largest of the pairs that the parts of a block have measured.
struct Absmax8bit {
  float first = 0;
  float second = 0;

  TRIREME_HOST_DEVICE Absmax8bit(const float* pairs, std::int64_t parts) {
    for (std::int64_t part = 0; part < parts; ++part) {
      first = larger(pairs[2 * part], first);
      second = larger(pairs[2 * part + 1], second);
    }
    first = finite_absmax(first);
    second = finite_absmax(second);
  }
};

// A team's update of one block.
template <typename T>
struct UpdateBlock8bit {
  Adam8bitPlanes<T> planes;
  std::int64_t count;
  const float* measured;  // of a part of a block: the pairs of all `parts`; otherwise null
  std::int64_t parts;

  template <typename Team>
  TRIREME_TEAM void operator()(const AdamUpdate<T>& update, bool skipped, const Team& team, std::int64_t block) const {
    if (skipped) return;
    const std::int64_t begin = block * block_of_8bit;
    const std::int64_t end = begin + block_of_8bit < count ? begin + block_of_8bit : count;
    const float first_before = planes.first_absmax[block];
    const float second_before = planes.second_absmax[block];
    Absmax8bit absmax(measured, parts);
    if (measured == nullptr) {
      for (std::int64_t i = begin + team.rank(); i < end; i += team.size()) {
        T weight = planes.weight[i];
        const Moments8bit<T> moments(update, planes, first_before, second_before, i, weight);
        absmax.first = larger(magnitude_of(static_cast<float>(moments.first)), absmax.first);
        absmax.second = larger(static_cast<float>(moments.second), absmax.second);
      }
      absmax.first = finite_absmax(team.max(absmax.first));
      absmax.second = finite_absmax(team.max(absmax.second));
    } else {
      team.wait();  // all threads have read the magnitudes of before
    }
    const float to_first = relative_to(absmax.first);
    const float to_second = relative_to(absmax.second);
    for (std::int64_t i = begin + team.rank(); i < end; i += team.size()) {
      const Moments8bit<T> moments(update, planes, first_before, second_before, i, planes.weight[i]);
      planes.first_codes[i] =
          static_cast<std::uint8_t>(SignedCodes::code<OneNumber>(static_cast<float>(moments.first) * to_first));
      planes.second_codes[i] =
          static_cast<std::uint8_t>(UnsignedCodes::code<OneNumber>(static_cast<float>(moments.second) * to_second));
    }
    if (team.rank() != 0) return;
    planes.first_absmax[block] = absmax.first;
    planes.second_absmax[block] = absmax.second;
  }
};

// A team measures a part of one block.
template <typename T>
struct MeasureBlock8bit {
  Adam8bitPlanes<T> planes;
  std::int64_t count;
  float* absmax;

  template <typename Team>
  TRIREME_TEAM void operator()(const AdamUpdate<T>& update, bool skipped, const Team& team, std::int64_t) const {
    if (skipped) return;
    float first = 0;
    float second = 0;
    for (std::int64_t i = team.rank(); i < count; i += team.size()) {
      T weight = planes.weight[i];
      const Moments8bit<T> moments(update, planes, *planes.first_absmax, *planes.second_absmax, i, weight);
      first = larger(magnitude_of(static_cast<float>(moments.first)), first);
      second = larger(static_cast<float>(moments.second), second);
    }
    first = team.max(first);
    second = team.max(second);
    if (team.rank() != 0) return;
    absmax[0] = first;
    absmax[1] = second;
  }
};

}  // namespace trireme::ops
