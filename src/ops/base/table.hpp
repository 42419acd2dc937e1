#pragma once

#include <type_traits>

#include "trireme/device/isa.hpp"

namespace trireme::ops {

template <template <typename> typename Kernels>
struct KernelTable {
  Kernels<float> of_float;
  Kernels<double> of_double;

  template <typename T>
  const Kernels<T>& of() const {
    if constexpr (std::is_same_v<T, float>) {
      return of_float;
    } else {
      return of_double;
    }
  }
};

}  // namespace trireme::ops
