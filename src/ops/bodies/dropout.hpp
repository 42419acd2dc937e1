#pragma once

#include <cstdint>

#include "ops/bodies/convert.hpp"
#include "trireme/math/random.hpp"

namespace trireme::ops {

// One random word for each element: word index % 4 of philox(seed, stream, index / 4), see core/philox.hpp. Elements whose
// word is at least `threshold` are kept.
struct DropoutNumbers {
  std::uint64_t seed = 0;
  std::uint64_t stream = 0;
  std::uint64_t first_index = 0;  // of the first element of the call
  std::uint32_t threshold = 0;
};

// The elements whose words are made together: part(p) for p in [0, num_parts()).
template <typename T>
struct Dropout {
  const T* x;
  Accumulate<T> factor;  // y = factor * x where kept, 0 elsewhere
  DropoutNumbers numbers;
  T* y;
  std::int64_t count;
  bool accumulate;

  TRIREME_HOST_DEVICE std::int64_t num_parts() const { return (skipped() + count + 3) / 4; }

  TRIREME_HOST_DEVICE void part(std::int64_t p) const {
    const auto four = math::philox(numbers.first_index / 4 + static_cast<std::uint64_t>(p), numbers.stream, numbers.seed);
    const std::int64_t first = 4 * p - skipped();
    write(first, four.word0);
    write(first + 1, four.word1);
    write(first + 2, four.word2);
    write(first + 3, four.word3);
  }

 private:
  // Words before that of the first element.
  TRIREME_HOST_DEVICE std::int64_t skipped() const { return static_cast<std::int64_t>(numbers.first_index % 4); }

  TRIREME_HOST_DEVICE void write(std::int64_t i, std::uint32_t word) const {
    using A = Accumulate<T>;
    if (i < 0 || i >= count) return;
    const A kept = word >= numbers.threshold ? factor * widened(x[i]) : A(0);
    y[i] = rounded<T>(accumulate ? widened(y[i]) + kept : kept);
  }
};

}  // namespace trireme::ops
