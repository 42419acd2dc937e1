#include "trireme/ops/matmul.hpp"

#include "ops/check.hpp"
#include "ops/floats.hpp"
#include "ops/matmul_double.hpp"
#include "ops/matmul_plan.hpp"
#include "trireme/ops/cast.hpp"

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

template <typename T, typename C>
void run_in_float(MatmulShape shape, const Tensor<T, Cpu>& a, const Tensor<T, Cpu>& b, const float* bias, Tensor<C, Cpu>& c) {
  shape.operands = shape.result = DType::float32;
  if constexpr (is_half<C>) {
    const Tensor<float, Cpu> floats = shape.accumulate ? as_floats(c) : Tensor<float, Cpu>(c.shape());
    run_matmul(shape, as_floats(a).data(), as_floats(b).data(), bias, floats.data());
    cast(floats, c);
  } else {
    run_matmul(shape, as_floats(a).data(), as_floats(b).data(), bias, c.data());
  }
}

template <typename T, typename C>
void run(MatmulShape shape, const Tensor<T, Cpu>& a, const Tensor<T, Cpu>& b, const Accumulate<T>* bias, Tensor<C, Cpu>& c) {
  if (shape.m == 0 || shape.n == 0) return;
  if (shape.k == 0) {  // a sum of nothing
    for (std::int64_t i = 0; i < c.numel() && !shape.accumulate; ++i) {
      c.data()[i] = static_cast<C>(bias != nullptr ? bias[i % shape.n] : Accumulate<T>(0));
    }
    return;
  }
  shape.operands = dtype_of<T>;
  shape.result = dtype_of<C>;
  if constexpr (is_half<T>) {
    if (!has_matmul(shape.operands)) return run_in_float(shape, a, b, bias, c);
  }
  run_matmul(shape, a.data(), b.data(), bias, c.data());
}

}  // namespace

template <typename T, typename C, typename D>
requires std::same_as<C, T> || std::same_as<C, Accumulate<T>>
void matmul(const Tensor<T, D>& a, const Tensor<T, D>& b, Tensor<C, D>& c, MatmulOptions options) {
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
  run<T, C>(shape, a, b, nullptr, c);
}

template <typename T, typename D>
void linear(const Tensor<T, D>& x, const Tensor<T, D>& weight, const Tensor<Accumulate<T>, D>& bias, Tensor<T, D>& y) {
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
  run<T, T>(shape, x, weight, bias.defined() ? bias.data() : nullptr, y);
}

#define TRIREME_INSTANTIATE(T)                                                                        \
  template void matmul(const Tensor<T, Cpu>&, const Tensor<T, Cpu>&, Tensor<T, Cpu>&, MatmulOptions); \
  template void linear(const Tensor<T, Cpu>&, const Tensor<T, Cpu>&, const Tensor<Accumulate<T>, Cpu>&, Tensor<T, Cpu>&);
TRIREME_INSTANTIATE(float)
TRIREME_INSTANTIATE(double)
TRIREME_INSTANTIATE(bfloat16)
TRIREME_INSTANTIATE(float16)
#undef TRIREME_INSTANTIATE
template void matmul(const Tensor<bfloat16, Cpu>&, const Tensor<bfloat16, Cpu>&, Tensor<float, Cpu>&, MatmulOptions);
template void matmul(const Tensor<float16, Cpu>&, const Tensor<float16, Cpu>&, Tensor<float, Cpu>&, MatmulOptions);

}  // namespace trireme::ops
