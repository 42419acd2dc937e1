#pragma once

#include <concepts>
#include <cstdint>
#include <vector>

#include "trireme/core/error.hpp"
#include "trireme/core/export.hpp"
#include "trireme/ops/array/array.hpp"
#include "trireme/ops/index/indexing.hpp"

// Elements by their index along a dim, which may count from the end. T: float, double, bfloat16, float16, std::int32_t,
// std::int64_t; indices are std::int64_t or std::int32_t, never below 0 (ops/index/indexing.hpp says what becomes of others).
// Sums go in the order of the index, with any number of threads.
namespace trireme TRIREME_EXPORT {

template <typename I>
concept IsIndex = std::same_as<I, std::int32_t> || std::same_as<I, std::int64_t>;

namespace ops {

// x without what an index that is smaller along other dims than `dim` does not reach.
std::vector<Slice> reached_slices(const Shape& x, int dim, const Shape& index);

template <typename T, typename D>
void require_source(std::string_view name, const Tensor<T, D>& source, const Shape& wanted) {
  require(source.defined(), "{}: source is undefined", name);
  require(source.shape() == wanted, "{}: source {} needs the shape {}", name, source.shape(), wanted);
}

}  // namespace ops

// y[i, j, k] = x[i, index[i, j, k], k] for dim 1. The index has as many dims as x, and along the others at most its extents.
template <typename T, typename D, IsIndex I>
Tensor<T, D> gather(const Tensor<T, D>& x, int dim, const Tensor<I, D>& index) {
  const Shape& shape = ops::defined_shape("gather", x);
  const std::vector<Slice> reached = ops::reached_slices(shape, dim, ops::defined_shape("gather", index, "index"));
  const Tensor<T, D> table = reached.empty() ? x : slice(x, reached);
  Tensor<T, D> y(index.shape());
  ops::gather(ops::indexing_of("gather", table.shape(), dim, index.shape()), table, ops::wide_index(index), y);
  return y;
}

// A copy of x with y[i, index[i, j, k], k] = source[i, j, k] for dim 1, of equal indices the last; or += that. The index has
// the extents of x but along `dim`, the source the shape of the index.
template <typename T, typename D, IsIndex I>
Tensor<T, D> scatter(const Tensor<T, D>& x, int dim, const Tensor<I, D>& index, const Tensor<T, D>& source) {
  const ops::Indexing indexing = ops::indexing_of("scatter", ops::defined_shape("scatter", x), dim, index.shape());
  ops::require_source("scatter", source, ops::defined_shape("scatter", index, "index"));
  Tensor<T, D> y = x.clone();
  ops::scatter(indexing, source, ops::wide_index(index), y);
  return y;
}
template <typename T, typename D, IsIndex I>
Tensor<T, D> scatter_add(const Tensor<T, D>& x, int dim, const Tensor<I, D>& index, const Tensor<T, D>& source) {
  const ops::Indexing indexing = ops::indexing_of("scatter_add", ops::defined_shape("scatter_add", x), dim, index.shape());
  ops::require_source("scatter_add", source, ops::defined_shape("scatter_add", index, "index"));
  Tensor<T, D> y = x.clone();
  ops::scatter_add(indexing, source, ops::wide_index(index), y);
  return y;
}

// A copy of x with y[i, index[i, j, k], k] = the largest, or smallest, of that and all such source[i, j, k] for dim 1, as
// torch's. Of tensors alone: it has no gradient. Maxima of groups, as of the edges of each node, start from an x of -infinity.
template <typename T, typename D, IsIndex I>
Tensor<T, D> scatter_reduce(const Tensor<T, D>& x, int dim, const Tensor<I, D>& index, const Tensor<T, D>& source,
                            ScatterReduction reduction) {
  const Shape& shape = ops::defined_shape("scatter_reduce", x);
  ops::require_source("scatter_reduce", source, ops::defined_shape("scatter_reduce", index, "index"));
  Tensor<T, D> y = x.clone();
  ops::scatter_extreme(reduction, ops::indexing_of("scatter_reduce", shape, dim, index.shape()), source, ops::wide_index(index),
                       y);
  return y;
}

// x's rows along a dim, by an index [n]: y[:, j] = x[:, index[j]] for dim 1.
template <typename T, typename D, IsIndex I>
Tensor<T, D> index_select(const Tensor<T, D>& x, int dim, const Tensor<I, D>& index) {
  const Shape& shape = ops::defined_shape("index_select", x);
  const ops::Indexing indexing =
      ops::shared_indexing("index_select", shape, dim, ops::defined_shape("index_select", index, "index"));
  Tensor<T, D> y(ops::with_extent(shape, dim, index.numel()));
  ops::gather(indexing, x, ops::wide_index(index), y);
  return y;
}

// A copy of x with y[:, index[j]] += source[:, j] for dim 1.
template <typename T, typename D, IsIndex I>
Tensor<T, D> index_add(const Tensor<T, D>& x, int dim, const Tensor<I, D>& index, const Tensor<T, D>& source) {
  const Shape& shape = ops::defined_shape("index_add", x);
  const ops::Indexing indexing = ops::shared_indexing("index_add", shape, dim, ops::defined_shape("index_add", index, "index"));
  ops::require_source("index_add", source, ops::with_extent(shape, dim, index.numel()));
  Tensor<T, D> y = x.clone();
  ops::scatter_add(indexing, source, ops::wide_index(index), y);
  return y;
}

// [..., classes] with a one at the index and zeros elsewhere, of T: one_hot<float>(index, 10).
template <typename T = std::int64_t, typename D, IsIndex I>
Tensor<T, D> one_hot(const Tensor<I, D>& index, std::int64_t classes) {
  const Shape& shape = ops::defined_shape("one_hot", index, "index");
  require(classes > 0, "one_hot: {} classes", classes);
  Tensor<T, D> y = Tensor<T, D>::zeros(ops::with_extent(ops::unsqueezed_shape(shape, -1), -1, classes));
  const auto ones = Tensor<T, D>::full(shape, static_cast<T>(1.0f));
  ops::scatter({.name = "one_hot", .outer = index.numel(), .rows = classes, .places = 1}, ones, ops::wide_index(index), y);
  return y;
}

}  // namespace trireme
