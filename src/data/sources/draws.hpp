#pragma once

#include <cstdint>

#include "trireme/core/philox.hpp"

namespace trireme::data {

// The random numbers of one sample. Each transform draws from its own places in [0, places), so that transforms do not affect
// each other.
class Draws {
 public:
  Draws(std::uint64_t seed, std::uint64_t stream, std::int64_t sample, std::uint64_t places)
      : seed_(seed), stream_(stream), first_(static_cast<std::uint64_t>(sample) * places) {}

  std::int64_t below(std::int64_t bound, std::uint64_t place) const {  // bound <= 2^31
    const std::uint64_t word = philox(seed_, stream_, first_ + place)[0];
    return static_cast<std::int64_t>((word * static_cast<std::uint64_t>(bound)) >> 32);
  }

  double between(double low, double high, std::uint64_t place) const {
    return low + (high - low) * philox_uniform(seed_, stream_, first_ + place);
  }

  double normal(std::uint64_t place) const { return philox_normal(seed_, stream_, first_ + place); }

 private:
  std::uint64_t seed_;
  std::uint64_t stream_;
  std::uint64_t first_;
};

}  // namespace trireme::data
