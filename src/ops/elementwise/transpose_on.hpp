#pragma once

#include <algorithm>
#include <functional>
#include <numeric>

#include "ops/base/check.hpp"
#include "ops/elementwise/transpose_sizes.hpp"
#include "trireme/core/bfloat16.hpp"
#include "trireme/core/float16.hpp"
#include "trireme/ops/elementwise/transpose.hpp"

// The transpose of ops/transpose.hpp for any device: what is checked is the same, Transpose<D> does the work.
namespace trireme::ops {

template <typename D>
struct Transpose {
  template <typename T>
  static void copy(const TransposeSizes& sizes, const T* x, T* y);
};

inline int transposed_place(const Shape& shape, int dim) {
  const int place = dim < 0 ? dim + shape.size() : dim;
  require(place >= 0 && place < shape.size(), "transpose: a tensor of shape {} has no dim {}", shape, dim);
  return place;
}

// Of dims a <= b.
inline TransposeSizes transpose_sizes(const Shape& shape, int a, int b) {
  const auto product = [&](int begin, int end) {
    return std::accumulate(shape.dims().begin() + begin, shape.dims().begin() + end, std::int64_t{1}, std::multiplies<>());
  };
  return {.outer = product(0, a),
          .rows = shape[a],
          .middle = product(a + 1, b),
          .columns = shape[b],
          .inner = product(b + 1, shape.size())};
}

// Whether the elements stay in their order.
inline bool moves_nothing(const TransposeSizes& sizes) { return sizes.middle == 1 && (sizes.rows == 1 || sizes.columns == 1); }

template <typename T, typename D>
void transpose(const Tensor<T, D>& x, int first, int second, Tensor<T, D>& y) {
  require_shape("transpose", "y", y, transposed_shape(x.shape(), first, second));
  const auto [a, b] = std::minmax({transposed_place(x.shape(), first), transposed_place(x.shape(), second)});
  const auto copy = [&] { device::copy_bytes(D{}, y.data(), D{}, x.data(), static_cast<std::size_t>(x.numel()) * sizeof(T)); };
  if (x.numel() == 0 || a == b) return copy();
  const TransposeSizes sizes = transpose_sizes(x.shape(), a, b);
  if (moves_nothing(sizes)) return copy();
  Transpose<D>::copy(sizes, x.data(), y.data());
}

#define TRIREME_INSTANTIATE_TRANSPOSE(T, D) template void transpose(const Tensor<T, D>&, int, int, Tensor<T, D>&)

}  // namespace trireme::ops
