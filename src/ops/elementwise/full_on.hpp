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

}  // namespace trireme::ops
