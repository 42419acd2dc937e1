#pragma once

#include <cstdint>
#include <type_traits>

#include "device/cuda/team.hpp"

namespace trireme::ops {

// Casts element `number` in [0, count). Neither type is a half type.
template <typename From, typename To>
struct CastElements {
  const From* x;
  To* y;
  bool accumulate;

  TRIREME_TEAM void operator()(std::int64_t number) const {
    const To value = static_cast<To>(x[number]);
    if constexpr (std::is_integral_v<To>) {
      const auto sum = static_cast<std::uint64_t>(accumulate ? y[number] : To{}) + static_cast<std::uint64_t>(value);
      y[number] = static_cast<To>(sum);
    } else {
      y[number] = accumulate ? y[number] + value : value;
    }
  }
};

}  // namespace trireme::ops
