#pragma once

#include "ops/base/check.hpp"
#include "trireme/ops/elementwise/cast.hpp"

// The operation of ops/elementwise/cast.hpp for any device: Casts<D> does the work.
namespace trireme::ops {

template <typename D>
struct Casts {
  template <typename From, typename To>
  static void cast(std::int64_t count, const From* x, To* y, bool accumulate);
};

template <typename From, typename To, typename D>
void cast(const Tensor<From, D>& x, Tensor<To, D>& y, bool accumulate) {
  require_defined("cast", "x", x);
  require_shape("cast", "y", y, x.shape());
  Casts<D>::cast(x.numel(), x.data(), y.data(), accumulate);
}

}  // namespace trireme::ops
