#pragma once

#include "trireme/core/export.hpp"
#include "trireme/ops/search/search.hpp"

// Sorts elements along one dim, by default the last:
//
//   const auto x = Tensor<float>::from({4}, {3, 1, 2, 3});
//   sort(x);      // values {1, 2, 3, 3}, indices {1, 2, 0, 3}
//   topk(x, 2);   // values {3, 3}, indices {0, 3}
//
// The sort is stable in both directions: equal elements keep their order. NaN counts as the largest. T: as for argmax().
namespace trireme TRIREME_EXPORT {

template <typename T, typename D>
TRIREME_EXPORT Indexed<Tensor<T, D>, D> sort(const Tensor<T, D>& x, int dim = -1, bool descending = false);

template <typename T, typename D>
TRIREME_EXPORT Tensor<std::int64_t, D> argsort(const Tensor<T, D>& x, int dim = -1, bool descending = false);

// The k largest elements, the largest first, or the k smallest, the smallest first. k is at most the dim's extent.
template <typename T, typename D>
TRIREME_EXPORT Indexed<Tensor<T, D>, D> topk(const Tensor<T, D>& x, std::int64_t k, int dim = -1, bool largest = true);

namespace ops {

// `shape` with extent k along `dim`; an Error unless k lies in [0, extent].
Shape topk_shape(const Shape& shape, std::int64_t k, int dim);

// Sorts along `dim` and writes the first elements: as many as values and indices have along `dim`.
template <typename T, typename D>
TRIREME_EXPORT void sort(const Tensor<T, D>& x, int dim, bool descending, Tensor<T, D>& values,
                         Tensor<std::int64_t, D>& indices);

}  // namespace ops
}  // namespace trireme
