#pragma once

#include <type_traits>

#include "device/cuda/team.hpp"
#include "ops/base/convert.hpp"
#include "trireme/ops/array/line.hpp"

namespace trireme::ops {

// y[i] of a Line of `count` numbers.
template <typename T>
struct FillLine {
  Line line;
  std::int64_t count;
  T* y;

  TRIREME_TEAM void operator()(std::int64_t i) const {
    const bool from_end = line.ends && i >= count / 2;
    const double value =
        from_end ? line.last - line.step * static_cast<double>(count - 1 - i) : line.first + line.step * static_cast<double>(i);
    if constexpr (std::is_integral_v<T>) {
      y[i] = static_cast<T>(value);
    } else {
      y[i] = rounded<T>(static_cast<Accumulate<T>>(value));
    }
  }
};

}  // namespace trireme::ops
