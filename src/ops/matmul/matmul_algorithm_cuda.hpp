#pragma once

#include <array>
#include <cstdint>

namespace trireme::ops::cuda {

// A configured algorithm of cuBLASLt as opaque data, which only the version of the library that made it understands.
using MatmulAlgorithm = std::array<std::uint64_t, 8>;

struct TimedAlgorithm {
  MatmulAlgorithm algorithm{};
  double seconds = 0;  // of one product

  bool operator==(const TimedAlgorithm&) const = default;
};

}  // namespace trireme::ops::cuda
