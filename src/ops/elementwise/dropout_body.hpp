#pragma once

#include <cstdint>

#include "ops/base/convert.hpp"
#include "trireme/math/random.hpp"
#include "trireme/ops/elementwise/elementwise_options.hpp"

namespace trireme::ops {

// One random word for each element: word index % 4 of philox(seed, stream, index / 4), see core/philox.hpp. Elements whose
// word is at least `threshold` are kept.
struct DropoutNumbers {
  std::uint64_t seed = 0;
  std::uint64_t stream = 0;
  std::uint64_t first_index = 0;  // of the first element of the call
  std::uint32_t threshold = 0;
};

TRIREME_HOST_DEVICE std::uint64_t stream_of_call(std::uint64_t stream, std::uint64_t call) {
  return stream ^ (call * 0xD1B54A32D192ED03);
}

TRIREME_HOST_DEVICE std::uint64_t stream_of_step(std::uint64_t stream, std::uint64_t step) {
  return stream ^ (step * 0x9E3779B97F4A7C15);
}

// Parts of four elements, whose random words are computed together: part(p) for p in [0, num_parts()).
template <typename T>
struct Dropout {
  const T* x;
  Accumulate<T> factor;  // y = factor * x where kept, 0 * x elsewhere: NaN stays NaN
  DropoutNumbers numbers;
  T* y;
  std::int64_t count;
  bool accumulate;
  const RandomPosition* position = nullptr;  // as RandomKey::on_device
  std::uint64_t per_sample = 0;

  // If the position is in the GPU's memory, the largest number possible.
  TRIREME_HOST_DEVICE std::int64_t num_parts() const { return ((position == nullptr ? skipped(numbers) : 3) + count + 3) / 4; }

  TRIREME_HOST_DEVICE void part(std::int64_t p) const {
    const DropoutNumbers here = at_position();
    const auto four = math::philox(here.first_index / 4 + static_cast<std::uint64_t>(p), here.stream, here.seed);
    const std::int64_t first = 4 * p - skipped(here);
    write(first, four.word0, here.threshold);
    write(first + 1, four.word1, here.threshold);
    write(first + 2, four.word2, here.threshold);
    write(first + 3, four.word3, here.threshold);
  }

 private:
  // Words of the first part that belong to no element.
  TRIREME_HOST_DEVICE static std::int64_t skipped(const DropoutNumbers& here) {
    return static_cast<std::int64_t>(here.first_index % 4);
  }

  TRIREME_HOST_DEVICE DropoutNumbers at_position() const {
    DropoutNumbers here = numbers;
    if (position == nullptr) return here;
    here.stream = stream_of_step(here.stream, position->step);
    here.first_index += static_cast<std::uint64_t>(position->first_sample) * per_sample;
    return here;
  }

  TRIREME_HOST_DEVICE void write(std::int64_t i, std::uint32_t word, std::uint32_t threshold) const {
    using A = Accumulate<T>;
    if (i < 0 || i >= count) return;
    const A kept = (word >= threshold ? factor : A(0)) * widened(x[i]);
    y[i] = rounded<T>(accumulate ? widened(y[i]) + kept : kept);
  }
};

}  // namespace trireme::ops
