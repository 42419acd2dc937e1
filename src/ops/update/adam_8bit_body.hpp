#pragma once

#include <limits>
#include <type_traits>

#include "device/cuda/team.hpp"
#include "ops/update/dynamic_codes.hpp"
#include "trireme/ops/update/adam_8bit.hpp"

namespace trireme::ops {

// The moments of element `i` after the step. Also updates its weight.
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

// Makes the largest magnitude finite, so that an element that overflows does not turn the others of its block into nan.
TRIREME_HOST_DEVICE float finite_absmax(float largest) {
  constexpr float most = std::numeric_limits<float>::max();
  return largest < most ? largest : most;
}

// The factor of a moment before it is converted to a code.
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

inline constexpr int least_team_8bit = 32;

// Updates a block by a team of at least `least_team_8bit` threads. They keep all new values of the block until its largest
// magnitudes are known.
template <typename T>
struct UpdateBlock8bit {
  Adam8bitPlanes<T> planes;
  std::int64_t count;
  const float* measured;  // for a part of a block: the pairs of all `parts`; otherwise null
  std::int64_t parts;

  template <typename Team>
  TRIREME_TEAM void operator()(const AdamUpdate<T>& update, bool skipped, const Team& team, std::int64_t block) const {
    if (skipped) return;
    const std::int64_t left = count - block * block_of_8bit;
    // For a whole block the number of elements is a constant, so that a thread reads all its elements at once.
    left < block_of_8bit ? update_block(update, team, block, static_cast<int>(left))
                         : update_block(update, team, block, std::integral_constant<int, block_of_8bit>());
  }

 private:
  static constexpr int most_of_thread = static_cast<int>(block_of_8bit) / least_team_8bit;

  // Calls visit(number, element) for this thread's elements.
  template <typename Team, typename Visit>
  TRIREME_TEAM static void each_own(const Team& team, std::int64_t block, int elements, Visit visit) {
    TRIREME_UNROLL(8)
    for (int number = 0; number < most_of_thread; ++number) {
      const int place = number * team.size() + team.rank();
      if (place < elements) visit(number, block * block_of_8bit + place);
    }
  }

  template <typename Team>
  TRIREME_TEAM void update_block(const AdamUpdate<T>& update, const Team& team, std::int64_t block, auto elements) const {
    const float first_before = planes.first_absmax[block];
    const float second_before = planes.second_absmax[block];
    T weight[most_of_thread];
    float first[most_of_thread];
    float second[most_of_thread];
    Absmax8bit absmax(measured, parts);
    each_own(team, block, elements, [&](int number, std::int64_t i) {
      weight[number] = planes.weight[i];
      const Moments8bit<T> moments(update, planes, first_before, second_before, i, weight[number]);
      first[number] = static_cast<float>(moments.first);
      second[number] = static_cast<float>(moments.second);
      if (measured != nullptr) return;
      absmax.first = larger(magnitude_of(first[number]), absmax.first);
      absmax.second = larger(second[number], absmax.second);
    });
    if (measured == nullptr) {
      absmax.first = finite_absmax(team.max(absmax.first));
      absmax.second = finite_absmax(team.max(absmax.second));
    } else {
      team.wait();  // all threads have read the old magnitudes
    }
    const float to_first = relative_to(absmax.first);
    const float to_second = relative_to(absmax.second);
    each_own(team, block, elements, [&](int number, std::int64_t i) {
      planes.weight[i] = weight[number];
      planes.first_codes[i] = static_cast<std::uint8_t>(SignedCodes::code<OneNumber>(first[number] * to_first));
      planes.second_codes[i] = static_cast<std::uint8_t>(UnsignedCodes::code<OneNumber>(second[number] * to_second));
    });
    if (team.rank() != 0) return;
    planes.first_absmax[block] = absmax.first;
    planes.second_absmax[block] = absmax.second;
  }
};

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
