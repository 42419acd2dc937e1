#pragma once

#include <cstdint>
#include <type_traits>

#include "ops/base/convert.hpp"
#include "ops/base/scalar_argument.hpp"

namespace trireme::ops {

template <typename T, typename S>
struct Full {
  ScalarArgument<S> number;
  T* y;

  TRIREME_HOST_DEVICE void operator()(std::int64_t i) const {
    if constexpr (std::is_same_v<T, S>) {
      y[i] = number.get();
    } else {
      y[i] = rounded<T>(static_cast<Accumulate<T>>(number.get()));
    }
  }
};

}  // namespace trireme::ops
