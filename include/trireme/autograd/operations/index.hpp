#pragma once

#include "trireme/autograd/operations/array.hpp"
#include "trireme/autograd/operations/pointwise.hpp"
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

template <typename T, typename D>
TRIREME_EXPORT Variable<T, D> record_scatter_extreme(ScatterReduction reduction, const Variable<T, D>& x,
                                                     const ops::Indexing& indexing, const Tensor<std::int64_t, D>& index,
                                                     const Variable<T, D>& source);

// Calls function(x, indexing, index, source) with the parts of x and source that the index reaches. Elsewhere the result is x.
template <typename T, typename D, typename I>
Variable<T, D> scattered(std::string_view name, const Variable<T, D>& x, int dim, const Tensor<I, D>& index,
                         const Variable<T, D>& source, const auto& function) {
  require_operands(name, x, index, source);
  const Tensor<std::int64_t, D> wide = ops::wide_index(index);
  return ops::scattered(name, x, dim, index.shape(), source,
                        [&](const ops::Indexing& indexing, const Variable<T, D>& reached, const Variable<T, D>& terms) {
                          return function(reached, indexing, wide, terms);
                        });
}

// Calls function(x, source) with both as Variables.
template <typename X, typename S>
auto as_variables(const X& x, const S& source, const auto& function) {
  using Of = ElementsOf<X>;
  using V = Variable<typename Of::T, typename Of::D>;
  return function(V(x), V(source));
}

}  // namespace detail

template <typename T, typename D, IsIndex I>
Variable<T, D> gather(const Variable<T, D>& x, int dim, const Tensor<I, D>& index) {
  require_operands("gather", x, index);
  const std::vector<Slice> reached = ops::reached_slices("gather", x.shape(), dim, index.shape());
  const Variable<T, D> table = reached.empty() ? x : slice(x, reached);
  const ops::Indexing indexing = ops::indexing_of("gather", table.shape(), dim, index.shape());
  return detail::record_gather(table, indexing, ops::wide_index(index), index.shape());
}

// The gradient of x is 0 for elements that were overwritten. The gradient of an element of source is 0 if a later element has
// the same index.
template <typename T, typename D, IsIndex I>
Variable<T, D> scatter(const Variable<T, D>& x, int dim, const Tensor<I, D>& index, const Variable<T, D>& source) {
  return detail::scattered("scatter", x, dim, index, source, [](const auto&... all) { return detail::record_scatter(all...); });
}
template <typename T, typename D, IsIndex I>
Variable<T, D> scatter_add(const Variable<T, D>& x, int dim, const Tensor<I, D>& index, const Variable<T, D>& source) {
  return detail::scattered("scatter_add", x, dim, index, source,
                           [](const auto&... all) { return detail::record_scatter_add(all...); });
}

// All elements of x and source that are the largest, or smallest, share the gradient equally.
template <typename T, typename D, IsIndex I>
Variable<T, D> scatter_reduce(const Variable<T, D>& x, int dim, const Tensor<I, D>& index, const Variable<T, D>& source,
                              ScatterReduction reduction) {
  return detail::scattered("scatter_reduce", x, dim, index, source,
                           [&](const auto&... all) { return detail::record_scatter_extreme(reduction, all...); });
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

// For a Variable and a Tensor, which is a constant: index_add(Tensor<float>::zeros({nodes, width}), 0, target, messages).
template <typename X, IsIndex I, typename D, typename S>
requires detail::VariableAndTensor<X, S>
auto scatter(const X& x, int dim, const Tensor<I, D>& index, const S& source) {
  return detail::as_variables(x, source, [&](const auto& a, const auto& b) { return scatter(a, dim, index, b); });
}
template <typename X, IsIndex I, typename D, typename S>
requires detail::VariableAndTensor<X, S>
auto scatter_add(const X& x, int dim, const Tensor<I, D>& index, const S& source) {
  return detail::as_variables(x, source, [&](const auto& a, const auto& b) { return scatter_add(a, dim, index, b); });
}
template <typename X, IsIndex I, typename D, typename S>
requires detail::VariableAndTensor<X, S>
auto scatter_reduce(const X& x, int dim, const Tensor<I, D>& index, const S& source, ScatterReduction reduction) {
  return detail::as_variables(x, source,
                              [&](const auto& a, const auto& b) { return scatter_reduce(a, dim, index, b, reduction); });
}
template <typename X, IsIndex I, typename D, typename S>
requires detail::VariableAndTensor<X, S>
auto index_add(const X& x, int dim, const Tensor<I, D>& index, const S& source) {
  return detail::as_variables(x, source, [&](const auto& a, const auto& b) { return index_add(a, dim, index, b); });
}

}  // namespace trireme
