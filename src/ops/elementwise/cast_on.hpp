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

#define TRIREME_INSTANTIATE_CAST_OF(From, To, D) template void cast(const Tensor<From, D>&, Tensor<To, D>&, bool)
#define TRIREME_INSTANTIATE_CAST(D)                           \
  TRIREME_INSTANTIATE_CAST_OF(float, bfloat16, D);            \
  TRIREME_INSTANTIATE_CAST_OF(float, float16, D);             \
  TRIREME_INSTANTIATE_CAST_OF(bfloat16, float, D);            \
  TRIREME_INSTANTIATE_CAST_OF(float16, float, D);             \
  TRIREME_INSTANTIATE_CAST_OF(float, double, D);              \
  TRIREME_INSTANTIATE_CAST_OF(double, float, D);              \
  TRIREME_INSTANTIATE_CAST_OF(bool, float, D);                \
  TRIREME_INSTANTIATE_CAST_OF(bool, double, D);               \
  TRIREME_INSTANTIATE_CAST_OF(bool, std::int32_t, D);         \
  TRIREME_INSTANTIATE_CAST_OF(bool, std::int64_t, D);         \
  TRIREME_INSTANTIATE_CAST_OF(std::int32_t, float, D);        \
  TRIREME_INSTANTIATE_CAST_OF(std::int32_t, double, D);       \
  TRIREME_INSTANTIATE_CAST_OF(std::int32_t, std::int64_t, D); \
  TRIREME_INSTANTIATE_CAST_OF(std::int64_t, float, D);        \
  TRIREME_INSTANTIATE_CAST_OF(std::int64_t, double, D);       \
  TRIREME_INSTANTIATE_CAST_OF(std::int64_t, std::int32_t, D)

}  // namespace trireme::ops
