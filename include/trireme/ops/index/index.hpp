#pragma once

#include <concepts>
#include <cstdint>
#include <vector>

#include "trireme/core/error.hpp"
#include "trireme/core/export.hpp"
#include "trireme/ops/array/array.hpp"
#include "trireme/ops/index/indexing.hpp"

// Reads and writes elements by their index along a dim; a negative dim counts from the end. T: float, double, bfloat16,
// float16, std::int32_t, std::int64_t. Indices are std::int64_t or std::int32_t and at least 0 (see ops/index/indexing.hpp for
// invalid indices). Sums are in the order of the index, with any number of threads.
namespace trireme TRIREME_EXPORT {

template <typename I>
concept IsIndex = std::same_as<I, std::int32_t> || std::same_as<I, std::int64_t>;

namespace ops {

// An index may be smaller than x along dims other than `dim`, and smaller than a source along all dims. The first function
// returns the part of x that the index uses. The second function returns the part of the source. The result is empty if
// everything is used.
std::vector<Slice> reached_slices(std::string_view name, const Shape& x, int dim, const Shape& index);
std::vector<Slice> reached_slices(std::string_view name, const Shape& source, const Shape& index);

// Returns x, in which function(indexing, part of x, part of source) replaces the part that the index uses.
template <typename X, typename S>
X scattered(std::string_view name, const X& x, int dim, const Shape& index, const S& source, const auto& function) {
  const std::vector<Slice> of_x = reached_slices(name, x.shape(), dim, index);
  const std::vector<Slice> of_source = reached_slices(name, source.shape(), index);
  const S terms = of_source.empty() ? source : slice(source, of_source);
  if (of_x.empty()) return function(indexing_of(name, x.shape(), dim, index), x, terms);
  const X reached = slice(x, of_x);
  return slice_scatter(x, function(indexing_of(name, reached.shape(), dim, index), reached, terms), of_x);
}

template <typename T, typename D, typename I>
Tensor<T, D> scattered(std::string_view name, const Tensor<T, D>& x, int dim, const Tensor<I, D>& index,
                       const Tensor<T, D>& source, const auto& function) {
  defined_shape(name, x);
  defined_shape(name, source, "source");
  const Shape& shape = defined_shape(name, index, "index");
  const Tensor<std::int64_t, D> wide = wide_index(index);
  return scattered(name, x, dim, shape, source,
                   [&](const Indexing& indexing, const Tensor<T, D>& reached, const Tensor<T, D>& terms) {
                     Tensor<T, D> y = reached.clone();
                     function(indexing, terms, wide, y);
                     return y;
                   });
}

template <typename T, typename D>
void require_source(std::string_view name, const Tensor<T, D>& source, const Shape& wanted) {
  require(source.defined(), "{}: source is undefined", name);
  require(source.shape() == wanted, "{}: source {} needs the shape {}", name, source.shape(), wanted);
}

}  // namespace ops

// y[i, j, k] = x[i, index[i, j, k], k] for dim 1. The index has as many dims as x. Along the other dims the index is at most
// as large as x.
template <typename T, typename D, IsIndex I>
Tensor<T, D> gather(const Tensor<T, D>& x, int dim, const Tensor<I, D>& index) {
  const Shape& shape = ops::defined_shape("gather", x);
  const std::vector<Slice> reached = ops::reached_slices("gather", shape, dim, ops::defined_shape("gather", index, "index"));
  const Tensor<T, D> table = reached.empty() ? x : slice(x, reached);
  Tensor<T, D> y(index.shape());
  ops::gather(ops::indexing_of("gather", table.shape(), dim, index.shape()), table, ops::wide_index(index), y);
  return y;
}

// A copy of x with y[i, index[i, j, k], k] = source[i, j, k] for dim 1; of equal indices the last one wins. scatter_add() adds
// source instead. index, x and source have the same number of dims. Along each dim the index is at most as large as the
// source, and along dims other than `dim` also at most as large as x.
template <typename T, typename D, IsIndex I>
Tensor<T, D> scatter(const Tensor<T, D>& x, int dim, const Tensor<I, D>& index, const Tensor<T, D>& source) {
  return ops::scattered("scatter", x, dim, index, source, [](auto&&... all) { ops::scatter(all...); });
}
template <typename T, typename D, IsIndex I>
Tensor<T, D> scatter_add(const Tensor<T, D>& x, int dim, const Tensor<I, D>& index, const Tensor<T, D>& source) {
  return ops::scattered("scatter_add", x, dim, index, source, [](auto&&... all) { ops::scatter_add(all...); });
}

// As torch's scatter_reduce. Returns a copy of x in which, for dim 1, y[i, index[i, j, k], k] is the largest or smallest of
// this element's value in x and of all source[i, j, k] with this index. The shapes are as for scatter(). To compute maxima of
// groups, fill x with -infinity.
template <typename T, typename D, IsIndex I>
Tensor<T, D> scatter_reduce(const Tensor<T, D>& x, int dim, const Tensor<I, D>& index, const Tensor<T, D>& source,
                            ScatterReduction reduction) {
  return ops::scattered("scatter_reduce", x, dim, index, source,
                        [&](auto&&... all) { ops::scatter_extreme(reduction, all...); });
}

// Rows of x along a dim, selected by an index [n]: y[:, j] = x[:, index[j]] for dim 1.
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

// [..., classes] of type T, with 1 at the index and 0 elsewhere: one_hot<float>(index, 10).
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
