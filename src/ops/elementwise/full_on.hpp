#pragma once

#include "ops/base/argument_of.hpp"
#include "ops/elementwise/full_body.hpp"
#include "trireme/core/bfloat16.hpp"
#include "trireme/core/float16.hpp"
#include "trireme/ops/elementwise/full.hpp"

// The operation of ops/elementwise/full.hpp for any device: Fills<D> does the work.
namespace trireme::ops {

template <typename D>
struct Fills {
  template <typename T, typename S>
  static void each_index(std::int64_t count, const Full<T, S>& body);
};

template <typename T, typename S, typename D>
Tensor<T, D> full(const Shape& shape, const Scalar<S, D>& value) {
  Tensor<T, D> y(shape);
  Fills<D>::each_index(y.numel(), Full<T, S>{argument_of(value), y.data()});
  return y;
}

#define TRIREME_INSTANTIATE_FULL(D)                                                      \
  template Tensor<float, D> full<float>(const Shape&, const Scalar<double, D>&);         \
  template Tensor<double, D> full<double>(const Shape&, const Scalar<double, D>&);       \
  template Tensor<bfloat16, D> full<bfloat16>(const Shape&, const Scalar<double, D>&);   \
  template Tensor<float16, D> full<float16>(const Shape&, const Scalar<double, D>&);     \
  template Tensor<float, D> full<float>(const Shape&, const Scalar<float, D>&);          \
  template Tensor<bfloat16, D> full<bfloat16>(const Shape&, const Scalar<bfloat16, D>&); \
  template Tensor<float16, D> full<float16>(const Shape&, const Scalar<float16, D>&)

}  // namespace trireme::ops
