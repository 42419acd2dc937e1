#pragma once

#include "ops/base/check.hpp"
#include "ops/matmul/matmul_shape.hpp"
#include "trireme/core/bfloat16.hpp"
#include "trireme/core/float16.hpp"
#include "trireme/ops/matmul/matmul.hpp"

// The operations of ops/matmul/matmul.hpp for any device: Matmul<D> multiplies.
namespace trireme::ops {

template <typename D>
struct Matmul {
  // Dims may be 0; an undefined bias adds nothing.
  template <typename T, typename C>
  static void run(MatmulShape shape, const Tensor<T, D>& a, const Tensor<T, D>& b, const Tensor<Accumulate<T>, D>& bias,
                  Tensor<C, D>& c);
};

template <typename T, typename C, typename D>
requires(std::same_as<C, T> || std::same_as<C, Accumulate<T>>) void matmul(const Tensor<T, D>& a, const Tensor<T, D>& b,
                                                                           Tensor<C, D>& c, MatmulOptions options) {
  require_defined("matmul", "a", a);
  require_defined("matmul", "b", b);
  require_defined("matmul", "c", c);
  const MatmulShape shape = matmul_shape<T, C>(a.shape(), b.shape(), c.shape(), options);
  c.count_change();
  Matmul<D>::template run<T, C>(shape, a, b, {}, c);
}

template <typename T, typename D>
void linear(const Tensor<T, D>& x, const Tensor<T, D>& weight, const Tensor<Accumulate<T>, D>& bias, Tensor<T, D>& y,
            LinearUse use) {
  require_defined("linear", "x", x);
  require_defined("linear", "weight", weight);
  require_defined("linear", "y", y);
  require(weight.shape().size() == 2, "linear: the weight has shape {}, but needs [out, in]", weight.shape());
  const std::int64_t in = weight.dim(1);
  const std::int64_t out = weight.dim(0);
  require(x.shape().size() > 0 && x.shape().back() == in, "linear: x has shape {}, but a weight of shape {} needs [..., {}]",
          x.shape(), weight.shape(), in);
  const std::int64_t rows = x.shape().rows();
  require(y.shape().size() > 0 && y.shape().back() == out && y.shape().rows() == rows,
          "linear: y has shape {}, but x of shape {} and a weight of shape {} need [..., {}]", y.shape(), x.shape(),
          weight.shape(), out);
  if (bias.defined()) require_count("linear", "bias", bias, out);
  y.count_change();
  const MatmulShape shape{.m = rows,
                          .n = out,
                          .k = in,
                          .transpose_b = true,
                          .bias = bias.defined(),
                          .inference = use == LinearUse::inference,
                          .operands = dtype_of<T>,
                          .result = dtype_of<T>};
  Matmul<D>::template run<T, T>(shape, x, weight, bias, y);
}

#define TRIREME_MATMUL(T, D) TRIREME_INSTANCE(T, matmul, T, D)

}  // namespace trireme::ops
