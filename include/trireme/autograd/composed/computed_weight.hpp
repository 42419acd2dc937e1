#pragma once

#include <cstdint>
#include <string_view>
#include <type_traits>

#include "trireme/autograd/composed/normalize.hpp"
#include "trireme/autograd/operations/array.hpp"
#include "trireme/autograd/operations/elementwise.hpp"
#include "trireme/autograd/operations/matmul.hpp"
#include "trireme/autograd/operations/pointwise.hpp"
#include "trireme/autograd/operations/reduce.hpp"
#include "trireme/core/export.hpp"

// Weights that are computed from parameters: weight norm and spectral norm.
namespace trireme TRIREME_EXPORT {

// Makes the weight operand of linear() and conv2d() from a float weight: the value is rounded to T for the product, and the
// gradient is float. With T = float or double, computed_weight() returns the weight itself.
//
//   conv2d(x, computed_weight<T>(weight_norm(v.master(), g.master())), bias.master());
template <typename T, typename D>
Variable<T, D, Accumulate<T>> computed_weight(const Variable<Accumulate<T>, D>& weight) {
  if constexpr (std::is_same_v<T, Accumulate<T>>) {
    return weight;
  } else {
    require_operands("computed_weight", weight);
    const Variable<Accumulate<T>, D> constant(weight.value());  // so that no tape records the rounding
    return {cast<T>(constant).value(), weight.gradient()};
  }
}

// Scales v[out, ...] to the norms g[out]: returns g * v / |v|, with the norm over all dims but dim 0 (Salimans, Kingma 2016,
// arXiv 1602.07868). g may have further dims of size 1, as in torch's [out, 1].
template <typename T, typename D>
Variable<T, D> weight_norm(const Variable<T, D>& v, const Variable<T, D>& g) {
  require_operands("weight_norm", v, g);
  const Shape& shape = v.shape();
  require(shape.size() > 0 && g.shape().numel() == shape[0],
          "weight_norm: g has shape {}, but needs one element for each of {}", g.shape(), shape);
  const std::int64_t out = shape[0];
  const Variable<T, D> rows = reshape(v, {out, out == 0 ? 0 : shape.numel() / out});
  const Variable<T, D> lengths = sqrt(sum(square(rows), -1, true));
  return reshape(multiply(rows, divide(reshape(g, {out, 1}), lengths)), shape);
}

// The unit vectors that spectral_norm() keeps from step to step: approximate left and right singular vectors of the weight.
template <typename T, typename D>
struct SingularVectors {
  Tensor<T, D> left = {};   // [out]
  Tensor<T, D> right = {};  // [numel / out]
};

// Does one power iteration, without a gradient. Returns vectors that are nearer to the singular vectors of weight[out, ...],
// reshaped to the matrix [out, numel / out].
template <typename T, typename D>
SingularVectors<T, D> power_iteration(const Tensor<T, D>& weight, const Tensor<T, D>& left, double epsilon = 1e-12) {
  const std::int64_t out = weight.dim(0);
  const Variable<T, D> matrix(weight.reshape({out, weight.numel() / out}));
  const Variable<T, D> right = normalize(matmul(Variable<T, D>(left.reshape({1, out})), matrix), epsilon);
  const Variable<T, D> after = normalize(matmul(right, transpose(matrix, 0, 1)), epsilon);
  return {.left = after.value().reshape({out}), .right = right.value().reshape({right.shape().back()})};
}

// Returns weight[out, ...] / (left^T weight right). The divisor is the largest singular value when the vectors have converged
// (Miyato et al. 2018, arXiv 1802.05957). The vectors are constants.
template <typename T, typename D>
Variable<T, D> spectral_norm(const Variable<T, D>& weight, const SingularVectors<T, D>& vectors) {
  require_operands("spectral_norm", weight, vectors.left, vectors.right);
  const Shape& shape = weight.shape();
  require(shape.size() > 0 && vectors.left.numel() == shape[0] && vectors.left.numel() * vectors.right.numel() == shape.numel(),
          "spectral_norm: vectors of {} and {} elements do not fit the weight {}", vectors.left.numel(), vectors.right.numel(),
          shape);
  const std::int64_t width = vectors.right.numel();
  const Variable<T, D> matrix = reshape(weight, {shape[0], width});
  const Variable<T, D> along = matmul(Variable<T, D>(vectors.left.reshape({1, shape[0]})), matrix);
  const Variable<T, D> largest = matmul(along, Variable<T, D>(vectors.right.reshape({width, 1})));
  return reshape(divide(matrix, largest), shape);
}

}  // namespace trireme
