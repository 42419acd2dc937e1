#pragma once

#include <cstdint>

#include "trireme/core/host_device.hpp"

namespace trireme::ops {

// x[outer, reduced, inner] becomes y[outer, inner].
struct ReduceSizes {
  std::int64_t outer = 1;
  std::int64_t reduced = 1;
  std::int64_t inner = 1;

  TRIREME_HOST_DEVICE std::int64_t results() const { return outer * inner; }
};

}  // namespace trireme::ops
