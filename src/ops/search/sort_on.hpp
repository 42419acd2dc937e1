#pragma once

#include "ops/base/check.hpp"
#include "ops/reduce/reduce_plan.hpp"
#include "ops/search/sort_body.hpp"
#include "trireme/core/bfloat16.hpp"
#include "trireme/core/float16.hpp"
#include "trireme/ops/search/sort.hpp"

// The operations of ops/search/sort.hpp for any device: Sort<D> does the work.
namespace trireme::ops {

template <typename D>
struct Sort {
  // The first `taken` elements of each sorted row: values and indices are [outer, taken, inner].
  template <typename T>
  static void run(const ReduceSizes& sizes, const T* x, bool descending, std::int64_t taken, T* values, std::int64_t* indices);
};

template <typename T, typename D>
void sort(const Tensor<T, D>& x, int dim, bool descending, Tensor<T, D>& values, Tensor<std::int64_t, D>& indices) {
  require_defined("sort", "x", x);
  const ReduceSizes sizes = reduce_plan("sort", x.shape(), dim).sizes;
  require_defined("sort", "values", values);
  require_shape("sort", "indices", indices, values.shape());
  if (values.numel() == 0) return;
  const std::int64_t taken = values.numel() / sizes.results();
  require_shape("sort", "values", values, topk_shape(x.shape(), taken, dim));
  Sort<D>::run(sizes, x.data(), descending, taken, values.data(), indices.data());
}

}  // namespace trireme::ops

namespace trireme {

template <typename T, typename D>
Indexed<Tensor<T, D>, D> sort(const Tensor<T, D>& x, int dim, bool descending) {
  ops::require_defined("sort", "x", x);
  Indexed<Tensor<T, D>, D> result{Tensor<T, D>(x.shape()), Tensor<std::int64_t, D>(x.shape())};
  ops::sort(x, dim, descending, result.values, result.indices);
  return result;
}

template <typename T, typename D>
Tensor<std::int64_t, D> argsort(const Tensor<T, D>& x, int dim, bool descending) {
  return sort(x, dim, descending).indices;
}

template <typename T, typename D>
Indexed<Tensor<T, D>, D> topk(const Tensor<T, D>& x, std::int64_t k, int dim, bool largest) {
  ops::require_defined("topk", "x", x);
  const Shape shape = ops::topk_shape(x.shape(), k, dim);
  Indexed<Tensor<T, D>, D> result{Tensor<T, D>(shape), Tensor<std::int64_t, D>(shape)};
  ops::sort(x, dim, largest, result.values, result.indices);
  return result;
}

}  // namespace trireme
