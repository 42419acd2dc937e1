#pragma once

#include "ops/base/check.hpp"
#include "ops/reduce/reduce_plan.hpp"
#include "ops/search/cumulative_body.hpp"
#include "trireme/core/bfloat16.hpp"
#include "trireme/core/float16.hpp"
#include "trireme/ops/search/cumulative.hpp"

// The operations of ops/search/cumulative.hpp for any device: Cumulate<D> does the work.
namespace trireme::ops {

template <typename D>
struct Cumulate {
  template <typename T>
  static void run(Accumulation kind, const ReduceSizes& sizes, bool backwards, const T* x, SumOf<T>* y, bool accumulate);
  template <typename T>
  static void product_gradient(const CumprodGradient<T>& body);
};

template <typename T, typename D>
void cumulate(Cumulative kind, const Tensor<T, D>& x, int dim, bool backwards, Tensor<SumOf<T>, D>& y, bool accumulate) {
  const std::string_view op = kind == Cumulative::sum ? "cumsum" : "cumprod";
  require_defined(op, "x", x);
  const ReduceSizes sizes = reduce_plan(op, x.shape(), dim).sizes;
  require_shape(op, "y", y, x.shape());
  if (x.numel() == 0) return;
  Cumulate<D>::run(kind == Cumulative::sum ? Accumulation::sum : Accumulation::product, sizes, backwards, x.data(), y.data(),
                   accumulate);
}

template <typename T, typename D>
void cumprod_backward(const Tensor<T, D>& x, int dim, const Tensor<T, D>& dy, Tensor<T, D>& dx, bool accumulate) {
  require_defined("cumprod", "x", x);
  const ReduceSizes sizes = reduce_plan("cumprod", x.shape(), dim).sizes;
  require_shape("cumprod", "dy", dy, x.shape());
  require_shape("cumprod", "dx", dx, x.shape());
  if (x.numel() == 0) return;
  const Tensor<double, D> room({x.numel()});
  Cumulate<D>::product_gradient(CumprodGradient<T>{sizes, x.data(), dy.data(), room.data(), dx.data(), accumulate});
}

}  // namespace trireme::ops

namespace trireme {

template <typename T, typename D>
Tensor<SumOf<T>, D> cumsum(const Tensor<T, D>& x, int dim) {
  ops::require_defined("cumsum", "x", x);
  Tensor<SumOf<T>, D> y(x.shape());
  ops::cumulate(ops::Cumulative::sum, x, dim, false, y);
  return y;
}

template <typename T, typename D>
Tensor<T, D> cumprod(const Tensor<T, D>& x, int dim) {
  ops::require_defined("cumprod", "x", x);
  Tensor<T, D> y(x.shape());
  ops::cumulate(ops::Cumulative::product, x, dim, false, y);
  return y;
}

}  // namespace trireme
