#pragma once

#include "ops/base/check.hpp"
#include "ops/reduce/reduce_plan.hpp"
#include "ops/search/search_body.hpp"
#include "trireme/core/bfloat16.hpp"
#include "trireme/core/float16.hpp"
#include "trireme/ops/reduce/reductions.hpp"
#include "trireme/ops/search/search.hpp"

// The operations of ops/search/search.hpp for any device: Search<D> does the work.
namespace trireme::ops {

template <typename D>
struct Search {
  // The indices of the first extremes of x[outer, reduced, inner].
  template <typename T>
  static void first(const ReduceSizes& sizes, const T* x, const ExtremeOf<T>* extremes, std::int64_t* indices);
  template <typename T>
  static void take(std::int64_t count, const Take<T>& body);
  template <typename T>
  static void take_gradient(std::int64_t count, const TakeGradient<T>& body);
  template <typename T>
  static void clear(T* x, std::int64_t count);
};

template <typename T, typename D>
void find_extremes(Extreme kind, const Tensor<T, D>& x, std::optional<int> dim, Tensor<T, D>& values,
                   Tensor<std::int64_t, D>& indices) {
  const std::string_view op = kind == Extreme::max ? "argmax" : "argmin";
  require_defined(op, "x", x);
  const ReduceSizes sizes = reduce_plan(op, x.shape(), dim ? Dims(*dim) : Dims()).sizes;
  require_count(op, "indices", indices, sizes.results());
  if (values.defined()) require_count(op, "values", values, sizes.results());
  if (sizes.results() == 0) return;
  require(sizes.reduced > 0, "{}: x has shape {}, which has no element to choose from: a dim that is searched is 0", op,
          x.shape());
  Tensor<ExtremeOf<T>, D> extremes(indices.shape());
  reduce({.kind = kind == Extreme::max ? Reduction::max : Reduction::min, .dims = dim ? Dims(*dim) : Dims()}, x, extremes);
  Search<D>::first(sizes, x.data(), extremes.data(), indices.data());
  if (values.defined()) {
    Search<D>::take(sizes.results(), Take<T>{sizes, 1, x.data(), indices.data(), values.data()});
  }
}

template <typename T, typename D>
void take_backward(int dim, const Tensor<std::int64_t, D>& indices, const Tensor<T, D>& dy, Tensor<T, D>& dx, bool accumulate) {
  require_defined("take_backward", "dx", dx);
  const ReduceSizes sizes = reduce_plan("take_backward", dx.shape(), dim).sizes;
  require_defined("take_backward", "indices", indices);
  require_count("take_backward", "dy", dy, indices.numel());
  if (!accumulate) Search<D>::clear(dx.data(), dx.numel());
  if (dy.numel() == 0) return;
  const std::int64_t taken = dy.numel() / sizes.results();
  Search<D>::take_gradient(dy.numel(), TakeGradient<T>{sizes, taken, indices.data(), dy.data(), dx.data(), accumulate});
}

namespace detail {

template <typename T, typename D>
Tensor<std::int64_t, D> place_of_extreme(Extreme kind, const Tensor<T, D>& x, std::optional<int> dim, bool keep_dims) {
  const std::string_view op = kind == Extreme::max ? "argmax" : "argmin";
  require_defined(op, "x", x);
  Tensor<std::int64_t, D> indices(reduced_shape(op, x.shape(), dim ? Dims(*dim) : Dims(), keep_dims));
  Tensor<T, D> no_values;
  find_extremes(kind, x, dim, no_values, indices);
  return indices;
}

template <typename T, typename D>
Indexed<Tensor<T, D>, D> extreme_with_index(std::string_view op, Extreme kind, const Tensor<T, D>& x, int dim, bool keep_dims) {
  require_defined(op, "x", x);
  const Shape shape = reduced_shape(op, x.shape(), dim, keep_dims);
  Indexed<Tensor<T, D>, D> found{Tensor<T, D>(shape), Tensor<std::int64_t, D>(shape)};
  find_extremes(kind, x, dim, found.values, found.indices);
  return found;
}

}  // namespace detail
}  // namespace trireme::ops

namespace trireme {

template <typename T, typename D>
Tensor<std::int64_t, D> argmax(const Tensor<T, D>& x, std::optional<int> dim, bool keep_dims) {
  return ops::detail::place_of_extreme(ops::Extreme::max, x, dim, keep_dims);
}

template <typename T, typename D>
Tensor<std::int64_t, D> argmin(const Tensor<T, D>& x, std::optional<int> dim, bool keep_dims) {
  return ops::detail::place_of_extreme(ops::Extreme::min, x, dim, keep_dims);
}

template <typename T, typename D>
Indexed<Tensor<T, D>, D> max_with_index(const Tensor<T, D>& x, int dim, bool keep_dims) {
  return ops::detail::extreme_with_index("max_with_index", ops::Extreme::max, x, dim, keep_dims);
}

template <typename T, typename D>
Indexed<Tensor<T, D>, D> min_with_index(const Tensor<T, D>& x, int dim, bool keep_dims) {
  return ops::detail::extreme_with_index("min_with_index", ops::Extreme::min, x, dim, keep_dims);
}

}  // namespace trireme
