#pragma once

#include <cstdint>
#include <string_view>

#include "trireme/core/export.hpp"
#include "trireme/tensor/tensor.hpp"

namespace trireme TRIREME_EXPORT {

enum class ScatterReduction : std::uint8_t { amax, amin };

namespace ops {

// How the dim `rows` of a table [outer, rows, inner] is indexed: by index[outer, places, inner], or by one shared
// index[places]. Indices lie in [0, rows). On the host any other number is an Error{invalid_argument} that names its place. On
// a GPU, where the host does not wait, such an index reads NaN (0 for integers) and writes nothing.
struct Indexing {
  std::string_view name;  // of the function
  std::int64_t outer = 1;
  std::int64_t rows = 0;
  std::int64_t places = 0;
  std::int64_t inner = 1;
  bool shared = false;  // one index[places] for all of outer and inner
};

// x is indexed along `dim` by an index with the same number of dims, and the same extents except along `dim`.
Indexing indexing_of(std::string_view name, const Shape& x, int dim, const Shape& index);
// x is indexed by an index with one dim.
Indexing shared_indexing(std::string_view name, const Shape& x, int dim, const Shape& index);

Shape with_extent(const Shape& shape, int dim, std::int64_t extent);  // `shape` with this extent of `dim`

// y[o, p, i] = x[o, index, i], or += with `accumulate`.
template <typename T, typename D>
TRIREME_EXPORT void gather(const Indexing& indexing, const Tensor<T, D>& x, const Tensor<std::int64_t, D>& index,
                           Tensor<T, D>& y, bool accumulate = false);

// y[o, index, i] += source[o, p, i], in the order of p, with any number of threads, and also on a GPU.
template <typename T, typename D>
TRIREME_EXPORT void scatter_add(const Indexing& indexing, const Tensor<T, D>& source, const Tensor<std::int64_t, D>& index,
                                Tensor<T, D>& y);

// y[o, index, i] = source[o, p, i]; of places p with the same index the last one wins.
template <typename T, typename D>
TRIREME_EXPORT void scatter(const Indexing& indexing, const Tensor<T, D>& source, const Tensor<std::int64_t, D>& index,
                            Tensor<T, D>& y);

// y[o, index, i] = max or min of y[o, index, i] and source[o, p, i]; NaN if either is NaN.
template <typename T, typename D>
TRIREME_EXPORT void scatter_extreme(ScatterReduction kind, const Indexing& indexing, const Tensor<T, D>& source,
                                    const Tensor<std::int64_t, D>& index, Tensor<T, D>& y);

// The gradients of scatter(): dsource[o, p, i] = dy[o, index, i] for the places that won, 0 for other places. dy becomes the
// gradient of y before scatter(), which is 0 for elements that were overwritten.
template <typename T, typename D>
TRIREME_EXPORT void scatter_backward(const Indexing& indexing, Tensor<T, D>& dy, const Tensor<std::int64_t, D>& index,
                                     Tensor<T, D>& dsource);

// Converts an index to std::int64_t; an index of this type is returned as it is.
template <typename I, typename D>
TRIREME_EXPORT Tensor<std::int64_t, D> wide_index(const Tensor<I, D>& index);

}  // namespace ops
}  // namespace trireme
