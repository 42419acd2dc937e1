#pragma once

#include <string_view>

#include "trireme/autograd/operations/array.hpp"
#include "trireme/autograd/operations/elementwise.hpp"
#include "trireme/autograd/operations/pointwise.hpp"
#include "trireme/autograd/operations/reduce.hpp"
#include "trireme/core/export.hpp"

namespace trireme TRIREME_EXPORT {
namespace detail {

// [rows, width] -> [rows, 1]
template <typename T, typename D>
Variable<T, D> row_sums(const Variable<T, D>& x) {
  return sum(x, -1, true);
}

// x[..., width] reshaped to [rows, width] and cast to Accumulate<T>, the type of losses.
template <typename T, typename D>
Variable<Accumulate<T>, D> rows_of(std::string_view function, const Variable<T, D>& x) {
  require_operands(function, x);
  require(x.shape().size() > 0, "{}: an operand is a scalar, but needs rows [..., width]", function);
  return cast<Accumulate<T>>(reshape(x, {x.shape().rows(), x.shape().back()}));
}

template <typename T, typename D>
void require_same_shape(std::string_view function, const Variable<T, D>& a, const Variable<T, D>& b) {
  require_operands(function, a, b);
  require(a.shape() == b.shape(), "{}: the operands have the shapes {} and {}, but must have the same", function, a.shape(),
          b.shape());
}

// 1 / max(|row|, epsilon) of each row: [rows, 1].
template <typename T, typename D>
Variable<T, D> inverse_lengths(const Variable<T, D>& x, double epsilon) {
  return rsqrt(maximum(row_sums(square(x)), epsilon * epsilon));
}

}  // namespace detail

// x[..., width] / max(|x|, epsilon), with the norm along the last dim, as torch.nn.functional.normalize.
template <typename T, typename D>
Variable<T, D> normalize(const Variable<T, D>& x, double epsilon = 1e-12) {
  const auto rows = detail::rows_of("normalize", x);
  return cast<T>(reshape(multiply(rows, detail::inverse_lengths(rows, epsilon)), x.shape()));
}

// The cosine of the angle between a and b, [..., width] -> [...]. Norms below epsilon count as epsilon, as in PyTorch.
template <typename T, typename D>
Variable<Accumulate<T>, D> cosine_similarity(const Variable<T, D>& a, const Variable<T, D>& b, double epsilon = 1e-8) {
  detail::require_same_shape("cosine_similarity", a, b);
  const auto x = detail::rows_of("cosine_similarity", a);
  const auto y = detail::rows_of("cosine_similarity", b);
  const auto cosines = multiply(multiply(detail::row_sums(multiply(x, y)), detail::inverse_lengths(x, epsilon)),
                                detail::inverse_lengths(y, epsilon));
  const auto dims = a.shape().dims();
  return reshape(cosines, Shape(dims.first(dims.size() - 1)));
}

}  // namespace trireme
