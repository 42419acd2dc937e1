#pragma once

#include <algorithm>
#include <type_traits>

#include "ops/base/check.hpp"
#include "trireme/core/bfloat16.hpp"
#include "trireme/core/dtype.hpp"
#include "trireme/core/float16.hpp"
#include "trireme/ops/elementwise/cast.hpp"
#include "trireme/ops/index/indexing.hpp"

// The functions of ops/index/indexing.hpp for any device: Indexed<D> does the work.
namespace trireme::ops {

enum class ScatterKind : std::uint8_t { put, add, largest, smallest };

template <typename D>
struct Indexed {
  static void require_range(const Indexing& indexing, const Tensor<std::int64_t, D>& index);
  template <typename T>
  static void gather(const Indexing& indexing, const T* x, const Tensor<std::int64_t, D>& index, T* y, bool accumulate);
  template <typename T>
  static void scatter(ScatterKind kind, const Indexing& indexing, const T* source, const std::int64_t* index, T* y);
  template <typename T>
  static void scatter_backward(const Indexing& indexing, T* dy, const std::int64_t* index, T* dsource);
  static void widen(std::int64_t count, const std::int32_t* index, std::int64_t* wide);
};

// `rows` is a tensor with the elements of the table, `places` one with an element for each place of the index.
template <typename T, typename D>
void require_counts(const Indexing& indexing, const Tensor<T, D>& rows, const Tensor<T, D>& places,
                    const Tensor<std::int64_t, D>& index) {
  require_count(indexing.name, "the table", rows, indexing.outer * indexing.rows * indexing.inner);
  require_count(indexing.name, "what is indexed", places, indexing.outer * indexing.places * indexing.inner);
  require_count(indexing.name, "index", index,
                indexing.shared ? indexing.places : indexing.outer * indexing.places * indexing.inner);
}
template <typename T, typename D>
void require_indexed(const Indexing& indexing, const Tensor<T, D>& rows, const Tensor<T, D>& places,
                     const Tensor<std::int64_t, D>& index) {
  require_counts(indexing, rows, places, index);
  Indexed<D>::require_range(indexing, index);
}

template <typename T, typename D>
void gather(const Indexing& indexing, const Tensor<T, D>& x, const Tensor<std::int64_t, D>& index, Tensor<T, D>& y,
            bool accumulate) {
  require_counts(indexing, x, y, index);
  y.count_change();
  Indexed<D>::gather(indexing, x.data(), index, y.data(), accumulate);
}

// Half types are summed in float and rounded once.
template <typename T, typename D>
void scatter_add(const Indexing& indexing, const Tensor<T, D>& source, const Tensor<std::int64_t, D>& index, Tensor<T, D>& y) {
  require_indexed(indexing, y, source, index);
  y.count_change();
  if constexpr (std::is_same_v<T, Accumulate<T>>) {
    Indexed<D>::scatter(ScatterKind::add, indexing, source.data(), index.data(), y.data());
  } else {
    Tensor<float, D> terms(source.shape());
    Tensor<float, D> sums(y.shape());
    cast(source, terms);
    cast(y, sums);
    Indexed<D>::scatter(ScatterKind::add, indexing, terms.data(), index.data(), sums.data());
    cast(sums, y);
  }
}

template <typename T, typename D>
void scatter(const Indexing& indexing, const Tensor<T, D>& source, const Tensor<std::int64_t, D>& index, Tensor<T, D>& y) {
  require_indexed(indexing, y, source, index);
  y.count_change();
  Indexed<D>::scatter(ScatterKind::put, indexing, source.data(), index.data(), y.data());
}

template <typename T, typename D>
void scatter_extreme(ScatterReduction kind, const Indexing& indexing, const Tensor<T, D>& source,
                     const Tensor<std::int64_t, D>& index, Tensor<T, D>& y) {
  require_indexed(indexing, y, source, index);
  y.count_change();
  Indexed<D>::scatter(kind == ScatterReduction::amax ? ScatterKind::largest : ScatterKind::smallest, indexing, source.data(),
                      index.data(), y.data());
}

template <typename T, typename D>
void scatter_backward(const Indexing& indexing, Tensor<T, D>& dy, const Tensor<std::int64_t, D>& index, Tensor<T, D>& dsource) {
  require_indexed(indexing, dy, dsource, index);
  Indexed<D>::scatter_backward(indexing, dy.data(), index.data(), dsource.data());
}

template <typename I, typename D>
Tensor<std::int64_t, D> wide_index(const Tensor<I, D>& index) {
  require(index.defined(), "an index is undefined");
  if constexpr (std::is_same_v<I, std::int64_t>) {
    return index;
  } else {
    Tensor<std::int64_t, D> wide(index.shape());
    Indexed<D>::widen(index.numel(), index.data(), wide.data());
    return wide;
  }
}

}  // namespace trireme::ops
