#pragma once

#include <cstdint>
#include <string_view>

#include "trireme/core/export.hpp"
#include "trireme/tensor/tensor.hpp"

namespace trireme TRIREME_EXPORT {

enum class ScatterReduction : std::uint8_t { amax, amin };

namespace ops {

// How the dim `rows` of a table [outer, rows, inner] is indexed: by index[outer, places, inner], or by the same index[places]
// everywhere. The index lies in [0, rows): on the host any other number is an Error{invalid_argument} that names its place. A
// GPU, for which the host does not wait, reads NaN there, of whole numbers 0, and writes nothing.
struct Indexing {
  std::string_view name;  // of the function
  std::int64_t outer = 1;
  std::int64_t rows = 0;
  std::int64_t places = 0;
  std::int64_t inner = 1;
  bool shared = false;  // one index for all
};

// Of x indexed along `dim` by an index with the same number of dims, and the same extents but along `dim`.
Indexing indexing_of(std::string_view name, const Shape& x, int dim, const Shape& index);
// By an index with one dim.
Indexing shared_indexing(std::string_view name, const Shape& x, int dim, const Shape& index);

Shape with_extent(const Shape& shape, int dim, std::int64_t extent);  // instead of that of a dim

// y[o, p, i] = x[o, index, i], or += that.
template <typename T, typename D>
TRIREME_EXPORT void gather(const Indexing& indexing, const Tensor<T, D>& x, const Tensor<std::int64_t, D>& index,
                           Tensor<T, D>& y, bool accumulate = false);

// y[o, index, i] += source[o, p, i], one place after the other: in the same order with any number of threads, and on a GPU.
template <typename T, typename D>
TRIREME_EXPORT void scatter_add(const Indexing& indexing, const Tensor<T, D>& source, const Tensor<std::int64_t, D>& index,
                                Tensor<T, D>& y);

// y[o, index, i] = source[o, p, i]; of places with one index the last one stays.
template <typename T, typename D>
TRIREME_EXPORT void scatter(const Indexing& indexing, const Tensor<T, D>& source, const Tensor<std::int64_t, D>& index,
                            Tensor<T, D>& y);

// y[o, index, i] = the larger or smaller one of that and source[o, p, i]; NaN where one is NaN.
template <typename T, typename D>
TRIREME_EXPORT void scatter_extreme(ScatterReduction kind, const Indexing& indexing, const Tensor<T, D>& source,
                                    const Tensor<std::int64_t, D>& index, Tensor<T, D>& y);

// The gradients of scatter(): dsource[o, p, i] = dy[o, index, i] for the places that stayed, 0 for others; dy becomes the
// gradient of what y was before, 0 where it was overwritten.
template <typename T, typename D>
TRIREME_EXPORT void scatter_backward(const Indexing& indexing, Tensor<T, D>& dy, const Tensor<std::int64_t, D>& index,
                                     Tensor<T, D>& dsource);

// The same numbers as std::int64_t, which functions on indices read; those that are it already are shared.
template <typename I, typename D>
TRIREME_EXPORT Tensor<std::int64_t, D> wide_index(const Tensor<I, D>& index);

}  // namespace ops
}  // namespace trireme
