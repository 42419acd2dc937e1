#pragma once

#include "trireme/core/host_device.hpp"

#if defined(__SSE__)
#include <xmmintrin.h>
#endif

namespace trireme::ops {

// In its scope this thread treats denormal numbers (below 1.2e-38 in float) as 0. Without it a moment that decays without
// gradients would stay denormal, and a processor takes many times as long for denormal numbers. Not used if an update divides
// by the root of such a moment.
class FlushDenormals {
 public:
#if !defined(__SSE__)
  explicit FlushDenormals(bool) {}
#else
  explicit FlushDenormals(bool flush) : before_(_mm_getcsr()) {
    if (flush) _mm_setcsr(before_ | results_are_zero | operands_are_zero);
  }
  ~FlushDenormals() { _mm_setcsr(before_); }
  FlushDenormals(const FlushDenormals&) = delete;
  FlushDenormals& operator=(const FlushDenormals&) = delete;

 private:
  static constexpr unsigned results_are_zero = 0x8000;
  static constexpr unsigned operands_are_zero = 0x0040;
  unsigned before_;
#endif
};

// Whether epsilon is so large that adding the root of a denormal moment makes no difference.
template <typename Update>
TRIREME_HOST_DEVICE bool outweighs_denormals(const Update& update) {
  if constexpr (requires { update.epsilon; }) {
    return update.epsilon >= 1e-12f;
  } else {
    return true;
  }
}

}  // namespace trireme::ops
