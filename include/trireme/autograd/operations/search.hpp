#pragma once

#include <optional>

#include "trireme/autograd/variable.hpp"
#include "trireme/core/export.hpp"
#include "trireme/ops/search/search.hpp"
#include "trireme/ops/search/sort.hpp"

// The searches, sorts and cumulative sums of ops/search/ on Variables. Gradients go to the elements that were taken; indices
// are Tensors, which have no gradient.
namespace trireme TRIREME_EXPORT {

template <typename T, typename D>
Tensor<std::int64_t, D> argmax(const Variable<T, D>& x, std::optional<int> dim = {}, bool keep_dims = false) {
  return argmax(x.value(), dim, keep_dims);
}
template <typename T, typename D>
Tensor<std::int64_t, D> argmin(const Variable<T, D>& x, std::optional<int> dim = {}, bool keep_dims = false) {
  return argmin(x.value(), dim, keep_dims);
}
template <typename T, typename D>
Tensor<std::int64_t, D> argsort(const Variable<T, D>& x, int dim = -1, bool descending = false) {
  return argsort(x.value(), dim, descending);
}

// The whole gradient of a result goes to the first of equal elements. With max(), equal elements share the gradient.
template <typename T, typename D>
TRIREME_EXPORT Indexed<Variable<T, D>, D> max_with_index(const Variable<T, D>& x, int dim, bool keep_dims = false);
template <typename T, typename D>
TRIREME_EXPORT Indexed<Variable<T, D>, D> min_with_index(const Variable<T, D>& x, int dim, bool keep_dims = false);

template <typename T, typename D>
TRIREME_EXPORT Indexed<Variable<T, D>, D> sort(const Variable<T, D>& x, int dim = -1, bool descending = false);
template <typename T, typename D>
TRIREME_EXPORT Indexed<Variable<T, D>, D> topk(const Variable<T, D>& x, std::int64_t k, int dim = -1, bool largest = true);

template <typename T, typename D>
TRIREME_EXPORT Variable<T, D> cumsum(const Variable<T, D>& x, int dim);

// The gradient is correct even if elements are 0.
template <typename T, typename D>
TRIREME_EXPORT Variable<T, D> cumprod(const Variable<T, D>& x, int dim);

}  // namespace trireme
