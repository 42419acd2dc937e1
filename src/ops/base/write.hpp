#pragma once

#include <cstdint>

#include "trireme/core/host_device.hpp"

namespace trireme::ops::TRIREME_ISA {

template <typename T, typename Value>
TRIREME_HOST_DEVICE void write(T* c, std::int64_t count, bool accumulate, Value value) {
  if (accumulate) {
#pragma omp simd
    for (std::int64_t i = 0; i < count; ++i) c[i] += value(i);
  } else {
#pragma omp simd
    for (std::int64_t i = 0; i < count; ++i) c[i] = value(i);
  }
}

}  // namespace trireme::ops::TRIREME_ISA
