#pragma once

#include "ops/base/pack.hpp"

namespace trireme::ops {

// y[..., width] += bias[width]: a thread for each pack.
template <int Width, typename T>
struct AddBias {
  T* y;
  const Accumulate<T>* bias;
  std::int64_t width;

  TRIREME_TEAM void operator()(std::int64_t i) const {
    auto values = load<Width>(y + i * Width);
    const auto addends = load<Width>(bias + i * Width % width);
    for (int k = 0; k < Width; ++k) values.at[k] += addends.at[k];
    store<Width>(y + i * Width, values);
  }
};

}  // namespace trireme::ops
