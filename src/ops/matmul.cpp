#include "trireme/ops/matmul.hpp"

#include "ops/check.hpp"
#include "ops/matmul_double.hpp"
#include "ops/matmul_plan.hpp"

namespace trireme::ops {
namespace {

struct Matrix {
  std::int64_t rows;
  std::int64_t columns;
};

template <typename T>
Matrix as_matrix(const Tensor<T, Cpu>& tensor, bool transpose) {
  const Matrix stored{tensor.shape().rows(), tensor.shape().back()};
  return transpose ? Matrix{stored.columns, stored.rows} : stored;
}

template <typename T>
void run(const MatmulShape& shape, const Tensor<T, Cpu>& a, const Tensor<T, Cpu>& b, const T* bias, Tensor<T, Cpu>& c) {
  if (shape.m == 0 || shape.n == 0) return;
  if (shape.k == 0) {  // a sum of nothing
    for (std::int64_t i = 0; i < c.numel() && !shape.accumulate; ++i) c.data()[i] = bias != nullptr ? bias[i % shape.n] : T(0);
    return;
  }
  run_matmul(shape, a.data(), b.data(), bias, c.data());
}

}  // namespace

template <typename T, typename D>
void matmul(const Tensor<T, D>& a, const Tensor<T, D>& b, Tensor<T, D>& c, MatmulOptions options) {
  require(a.shape().size() > 0 && b.shape().size() > 0 && c.shape().size() > 0, "matmul: a scalar is no matrix");
  const Matrix left = as_matrix(a, options.transpose_a);
  const Matrix right = as_matrix(b, options.transpose_b);
  const Matrix result = as_matrix(c, false);
  require(left.columns == right.rows && left.rows == result.rows && right.columns == result.columns,
          "matmul: c {} = a {}{} b {}{} does not fit: a is [{}, {}], b is [{}, {}], c is [{}, {}]", c.shape(), a.shape(),
          options.transpose_a ? " transposed" : "", b.shape(), options.transpose_b ? " transposed" : "", left.rows,
          left.columns, right.rows, right.columns, result.rows, result.columns);
  const MatmulShape shape{.m = left.rows,
                          .n = right.columns,
                          .k = left.columns,
                          .transpose_a = options.transpose_a,
                          .transpose_b = options.transpose_b,
                          .accumulate = options.accumulate};
  run<T>(shape, a, b, nullptr, c);
}

template <typename T, typename D>
void linear(const Tensor<T, D>& x, const Tensor<T, D>& weight, const Tensor<T, D>& bias, Tensor<T, D>& y) {
  require(weight.shape().size() == 2, "linear: the weight has shape {}, but needs [out, in]", weight.shape());
  const std::int64_t in = weight.dim(1);
  const std::int64_t out = weight.dim(0);
  require(x.shape().size() > 0 && x.shape().back() == in, "linear: x has shape {}, but a weight of shape {} needs [..., {}]",
          x.shape(), weight.shape(), in);
  const std::int64_t rows = x.shape().rows();
  require(y.shape().size() > 0 && y.shape().back() == out && y.shape().rows() == rows,
          "linear: y has shape {}, but x of shape {} and a weight of shape {} need [..., {}]", y.shape(), x.shape(),
          weight.shape(), out);
  if (bias.defined()) require_count("linear", "bias", bias.shape(), out);
  const MatmulShape shape{.m = rows, .n = out, .k = in, .transpose_b = true, .bias = bias.defined()};
  run<T>(shape, x, weight, bias.defined() ? bias.data() : nullptr, y);
}

#define TRIREME_INSTANTIATE(T)                                                                        \
  template void matmul(const Tensor<T, Cpu>&, const Tensor<T, Cpu>&, Tensor<T, Cpu>&, MatmulOptions); \
  template void linear(const Tensor<T, Cpu>&, const Tensor<T, Cpu>&, const Tensor<T, Cpu>&, Tensor<T, Cpu>&);
TRIREME_INSTANTIATE(float)
TRIREME_INSTANTIATE(double)
#undef TRIREME_INSTANTIATE

}  // namespace trireme::ops
