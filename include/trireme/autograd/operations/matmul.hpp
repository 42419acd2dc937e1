#pragma once

#include <concepts>
#include <cstdint>
#include <string_view>
#include <vector>

#include "trireme/autograd/variable.hpp"
#include "trireme/core/bfloat16.hpp"
#include "trireme/core/export.hpp"

// Products of Variables. T: float, double, bfloat16, float16. Biases, and gradients of weights, are Accumulate<T>: float for
// bfloat16 and float16.
namespace trireme TRIREME_EXPORT {

// [..., in] x [out, in]^T (+ [out]) -> [..., out]
template <typename T, typename D>
TRIREME_EXPORT Variable<T, D> linear(const Variable<T, D>& x, const Variable<T, D, Accumulate<T>>& weight,
                                     const Variable<Accumulate<T>, D>& bias = {});

// linear(gelu(linear(x, weight1, bias1)), weight2, bias2), an MLP with weight1[middle, in] and weight2[out, middle]. A GPU
// fuses the GELU and its derivative with the matrix products before them (ops/matmul/linear_gelu.hpp).
template <typename T, typename D>
TRIREME_EXPORT Variable<T, D> linear_gelu_linear(const Variable<T, D>& x, const Variable<T, D, Accumulate<T>>& weight1,
                                                 const Variable<Accumulate<T>, D>& bias1,
                                                 const Variable<T, D, Accumulate<T>>& weight2,
                                                 const Variable<Accumulate<T>, D>& bias2);

// a[..., m, k] b[..., k, n] -> [..., m, n]; leading dims are broadcast. A vector on the left is a row, and a vector on the
// right is a column; the result has no dim for a vector. b may be a parameter's variable().
template <typename T, typename D, typename G>
requires(std::same_as<G, T> || std::same_as<G, Accumulate<T>>) TRIREME_EXPORT Variable<T, D> matmul(const Variable<T, D>& a,
                                                                                                    const Variable<T, D, G>& b);

// For a Variable and a Tensor, which is a constant.
template <typename T, typename D, typename G>
requires(std::same_as<G, T> || std::same_as<G, Accumulate<T>>) Variable<T, D> matmul(const Tensor<T, D>& a,
                                                                                     const Variable<T, D, G>& b) {
  return matmul(Variable<T, D>(a), b);
}
template <typename T, typename D>
Variable<T, D> matmul(const Variable<T, D>& a, const Tensor<T, D>& b) {
  return matmul(a, Variable<T, D>(b));
}

// The products of ops/matmul/products.hpp, composed of reshape, permute, sum and matmul: an observer sees these operations.
template <typename T, typename D>
TRIREME_EXPORT Variable<T, D> outer(const Variable<T, D>& a, const Variable<T, D>& b);
template <typename T, typename D>
TRIREME_EXPORT Variable<T, D> dot(const Variable<T, D>& a, const Variable<T, D>& b);

//   einsum("bij,bjk->bik", a, b)
template <typename T, typename D>
TRIREME_EXPORT Variable<T, D> einsum(std::string_view equation, const Variable<T, D>& a, const Variable<T, D>& b);
template <typename T, typename D>
TRIREME_EXPORT Variable<T, D> einsum(std::string_view equation, const Variable<T, D>& x);

// Columns [first, first + count) of a matrix.
struct LowRankColumns {
  std::int64_t first = 0;
  std::int64_t count = 0;
};

// For each i, adds scale * u_i b_i^T to some columns of y[..., out]. u[..., n * rank] has the u_i side by side; b[sum of
// counts, rank] has the b_i one below the other. The result takes over the memory of y, so y must not be used afterwards, and
// no operation may have kept y.
template <typename T, typename D>
TRIREME_EXPORT Variable<T, D> add_low_rank(const Variable<T, D>& y, const Variable<T, D>& u,
                                           const Variable<T, D, Accumulate<T>>& b, const std::vector<LowRankColumns>& columns,
                                           double scale);

// Where the scale of an operand of an 8-bit product comes from (Micikevicius et al. 2022, arXiv 2209.05433).
enum class Float8Scaling : std::uint8_t {
  none,     // no 8-bit product
  current,  // from the operand's largest element; takes one more pass over the operand
  delayed,  // from the largest elements of earlier calls; larger elements saturate
};

Float8Scaling float8_scaling_named(std::string_view name);  // the names above; another name is an error

// The state of delayed scaling: the largest magnitudes of each operand in earlier calls [length], the newest first.
template <typename D = Cpu>
struct Float8History {
  Tensor<float, D> x;  // if x, weight and dy are undefined: current scaling
  Tensor<float, D> weight;
  Tensor<float, D> dy;
  bool update = true;  // false: the call does not change the history
};

// linear() by products of 8-bit operands (ops/matmul/float8.hpp): x and the weight are rounded to e4m3, and the gradient of y
// is rounded to e5m2. The gradient of the weight is float. The number of rows of x, `in` and `out` must be multiples of 16.
template <typename D>
TRIREME_EXPORT Variable<bfloat16, D> float8_linear(const Variable<bfloat16, D>& x, const Variable<bfloat16, D, float>& weight,
                                                   const Variable<float, D>& bias, const Float8History<D>& history = {});

}  // namespace trireme
