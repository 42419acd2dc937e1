#pragma once

#include <cstdint>
#include <optional>

#include "trireme/core/export.hpp"
#include "trireme/tensor/tensor.hpp"

// Functions that find the largest and the smallest elements:
//
//   const auto x = Tensor<float>::from({2, 3}, {1, 5, 5, 4, 2, 3});
//   argmax(x);          // 1, of shape []: the index among all elements
//   argmax(x, 0);       // {1, 0, 0}
//   max_with_index(x, -1)  // values {5, 4}, indices {1, 0}
//
// Of equal elements the first is taken. If there is a NaN, it is taken both as largest and smallest, as in PyTorch. An x
// without elements is an Error. T: float, double, bfloat16, float16, std::int32_t, std::int64_t. The functions of Variables are
// in autograd/operations/search.hpp.
namespace trireme TRIREME_EXPORT {

// Elements, and their indices in the dim that was searched.
template <typename Values, typename D>
struct Indexed {
  Values values;
  Tensor<std::int64_t, D> indices;
};

// The indices along one dim, or one index among all elements in row-major order.
template <typename T, typename D>
TRIREME_EXPORT Tensor<std::int64_t, D> argmax(const Tensor<T, D>& x, std::optional<int> dim = {}, bool keep_dims = false);
template <typename T, typename D>
TRIREME_EXPORT Tensor<std::int64_t, D> argmin(const Tensor<T, D>& x, std::optional<int> dim = {}, bool keep_dims = false);

template <typename T, typename D>
TRIREME_EXPORT Indexed<Tensor<T, D>, D> max_with_index(const Tensor<T, D>& x, int dim, bool keep_dims = false);
template <typename T, typename D>
TRIREME_EXPORT Indexed<Tensor<T, D>, D> min_with_index(const Tensor<T, D>& x, int dim, bool keep_dims = false);

namespace ops {

enum class Extreme : std::uint8_t { max, min };

// Writes the indices of the largest or smallest elements along one dim of x, or among all elements. Also writes the elements,
// unless `values` is undefined.
template <typename T, typename D>
TRIREME_EXPORT void find_extremes(Extreme kind, const Tensor<T, D>& x, std::optional<int> dim, Tensor<T, D>& values,
                                  Tensor<std::int64_t, D>& indices);

// The gradient of taking elements from x along one dim, each at most once: dx[indices] = dy and 0 elsewhere, or += with
// `accumulate`. T: float, double, bfloat16, float16.
template <typename T, typename D>
TRIREME_EXPORT void take_backward(int dim, const Tensor<std::int64_t, D>& indices, const Tensor<T, D>& dy, Tensor<T, D>& dx,
                                  bool accumulate);

}  // namespace ops
}  // namespace trireme
