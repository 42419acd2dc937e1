#pragma once

#include "trireme/autograd/array.hpp"
#include "trireme/core/export.hpp"
#include "trireme/ops/index/index.hpp"

// The functions of ops/index/index.hpp on variables; an index is a Tensor. T: float, double, bfloat16, float16.
namespace trireme TRIREME_EXPORT {
namespace detail {

template <typename T, typename D>
TRIREME_EXPORT Variable<T, D> record_gather(const Variable<T, D>& x, const ops::Indexing& indexing,
                                            const Tensor<std::int64_t, D>& index, const Shape& result);
template <typename T, typename D>
TRIREME_EXPORT Variable<T, D> record_scatter(const Variable<T, D>& x, const ops::Indexing& indexing,
                                             const Tensor<std::int64_t, D>& index, const Variable<T, D>& source);
template <typename T, typename D>
TRIREME_EXPORT Variable<T, D> record_scatter_add(const Variable<T, D>& x, const ops::Indexing& indexing,
                                                 const Tensor<std::int64_t, D>& index, const Variable<T, D>& source);

}  // namespace detail

template <typename T, typename D, IsIndex I>
Variable<T, D> gather(const Variable<T, D>& x, int dim, const Tensor<I, D>& index) {
  require_operands("gather", x, index);
  const std::vector<Slice> reached = ops::reached_slices(x.shape(), dim, index.shape());
  const Variable<T, D> table = reached.empty() ? x : slice(x, reached);
  const ops::Indexing indexing = ops::indexing_of("gather", table.shape(), dim, index.shape());
  return detail::record_gather(table, indexing, ops::wide_index(index), index.shape());
}

// The gradient of x is 0 where it was overwritten, that of the source where another place with the same index came later.
template <typename T, typename D, IsIndex I>
Variable<T, D> scatter(const Variable<T, D>& x, int dim, const Tensor<I, D>& index, const Variable<T, D>& source) {
  require_operands("scatter", x, index, source);
  ops::require_source("scatter", source.value(), index.shape());
  return detail::record_scatter(x, ops::indexing_of("scatter", x.shape(), dim, index.shape()), ops::wide_index(index), source);
}
template <typename T, typename D, IsIndex I>
Variable<T, D> scatter_add(const Variable<T, D>& x, int dim, const Tensor<I, D>& index, const Variable<T, D>& source) {
  require_operands("scatter_add", x, index, source);
  ops::require_source("scatter_add", source.value(), index.shape());
  const ops::Indexing indexing = ops::indexing_of("scatter_add", x.shape(), dim, index.shape());
  return detail::record_scatter_add(x, indexing, ops::wide_index(index), source);
}

template <typename T, typename D, IsIndex I>
Variable<T, D> index_select(const Variable<T, D>& x, int dim, const Tensor<I, D>& index) {
  require_operands("index_select", x, index);
  const ops::Indexing indexing = ops::shared_indexing("index_select", x.shape(), dim, index.shape());
  return detail::record_gather(x, indexing, ops::wide_index(index), ops::with_extent(x.shape(), dim, index.numel()));
}
template <typename T, typename D, IsIndex I>
Variable<T, D> index_add(const Variable<T, D>& x, int dim, const Tensor<I, D>& index, const Variable<T, D>& source) {
  require_operands("index_add", x, index, source);
  const ops::Indexing indexing = ops::shared_indexing("index_add", x.shape(), dim, index.shape());
  ops::require_source("index_add", source.value(), ops::with_extent(x.shape(), dim, index.numel()));
  return detail::record_scatter_add(x, indexing, ops::wide_index(index), source);
}

// Of a Variable and a Tensor, which is a constant: index_add(Tensor<float>::zeros({nodes, width}), 0, target, messages).
template <typename T, typename D, IsIndex I>
Variable<T, D> scatter(const Tensor<T, D>& x, int dim, const Tensor<I, D>& index, const Variable<T, D>& source) {
  return scatter(Variable<T, D>(x), dim, index, source);
}
template <typename T, typename D, IsIndex I>
Variable<T, D> scatter(const Variable<T, D>& x, int dim, const Tensor<I, D>& index, const Tensor<T, D>& source) {
  return scatter(x, dim, index, Variable<T, D>(source));
}
template <typename T, typename D, IsIndex I>
Variable<T, D> scatter_add(const Tensor<T, D>& x, int dim, const Tensor<I, D>& index, const Variable<T, D>& source) {
  return scatter_add(Variable<T, D>(x), dim, index, source);
}
template <typename T, typename D, IsIndex I>
Variable<T, D> scatter_add(const Variable<T, D>& x, int dim, const Tensor<I, D>& index, const Tensor<T, D>& source) {
  return scatter_add(x, dim, index, Variable<T, D>(source));
}
template <typename T, typename D, IsIndex I>
Variable<T, D> index_add(const Tensor<T, D>& x, int dim, const Tensor<I, D>& index, const Variable<T, D>& source) {
  return index_add(Variable<T, D>(x), dim, index, source);
}
template <typename T, typename D, IsIndex I>
Variable<T, D> index_add(const Variable<T, D>& x, int dim, const Tensor<I, D>& index, const Tensor<T, D>& source) {
  return index_add(x, dim, index, Variable<T, D>(source));
}

}  // namespace trireme
