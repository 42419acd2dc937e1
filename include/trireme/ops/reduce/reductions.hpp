#pragma once

#include <cstdint>
#include <string_view>
#include <type_traits>

#include "trireme/core/dims.hpp"
#include "trireme/core/dtype.hpp"
#include "trireme/core/export.hpp"
#include "trireme/tensor/tensor.hpp"

// Sums, means, maxima and norms of a tensor over any of its dims, all of them unless some are named:
//
//   const auto x = Tensor<float>::from({2, 3}, {1, 2, 3, 4, 5, 6});
//   sum(x);           // 21, of shape []
//   sum(x, 0);        // {5, 7, 9}
//   max(x, -1);       // {3, 6}
//   mean(x, 1, true)  // {{2}, {5}}, of shape [2, 1]
//
// With keep_dims the dims stay, with the extent 1. Floats of any kind are summed in double, on the CPU after four at a time
// were added as float, and integers in std::int64_t. The order of the additions follows from the sizes, so on the CPU the bits
// do not depend on the number of threads. Dims that are not neighbours cost a permuted copy of x. Functions of Variables have
// the same names (autograd/operations/reduce.hpp).
namespace trireme TRIREME_EXPORT {

// What the sum of elements of type T is: std::int64_t for integers and bool, T itself for floats.
template <typename T>
using SumOf = std::conditional_t<std::is_integral_v<T>, std::int64_t, T>;

// 0 where there is nothing to add. T: float, double, bfloat16, float16, std::int32_t, std::int64_t, bool: how many are true.
template <typename T, typename D>
TRIREME_EXPORT Tensor<SumOf<T>, D> sum(const Tensor<T, D>& x, const Dims& dims = {}, bool keep_dims = false);

// The largest and the smallest element: NaN where one is NaN. Of no element it is an Error. T: float, double, bfloat16,
// float16, std::int32_t, std::int64_t. With the place of the element: max_with_index() of ops/search/search.hpp.
template <typename T, typename D>
TRIREME_EXPORT Tensor<T, D> max(const Tensor<T, D>& x, const Dims& dims = {}, bool keep_dims = false);
template <typename T, typename D>
TRIREME_EXPORT Tensor<T, D> min(const Tensor<T, D>& x, const Dims& dims = {}, bool keep_dims = false);

// Those that follow are for float, double, bfloat16 and float16.

template <typename T, typename D>
TRIREME_EXPORT Tensor<T, D> mean(const Tensor<T, D>& x, const Dims& dims = {}, bool keep_dims = false);  // NaN of nothing

template <typename T, typename D>
TRIREME_EXPORT Tensor<T, D> prod(const Tensor<T, D>& x, const Dims& dims = {}, bool keep_dims = false);  // 1 of nothing

// log(sum(exp(x))), without overflow: the largest element is taken out. -infinity of nothing.
template <typename T, typename D>
TRIREME_EXPORT Tensor<T, D> logsumexp(const Tensor<T, D>& x, const Dims& dims = {}, bool keep_dims = false);

// sum((x - mean(x))^2) / max(0, n - correction) of n elements, and its square root, which is torch's std: that name is the
// standard library's. A correction of 0 is for all of a population, 1 for a sample of it.
template <typename T, typename D>
TRIREME_EXPORT Tensor<T, D> var(const Tensor<T, D>& x, const Dims& dims = {}, bool keep_dims = false, double correction = 1);
template <typename T, typename D>
TRIREME_EXPORT Tensor<T, D> stddev(const Tensor<T, D>& x, const Dims& dims = {}, bool keep_dims = false, double correction = 1);

// p = 1: sum(|x|); 2: sqrt(sum(x^2)); infinity: max(|x|), of no element an Error. Another p is an Error.
template <typename T, typename D>
TRIREME_EXPORT Tensor<T, D> norm(const Tensor<T, D>& x, double p = 2, const Dims& dims = {}, bool keep_dims = false);

// Whether one element is true, or all are; of no element: false, true.
template <typename D>
TRIREME_EXPORT Tensor<bool, D> any(const Tensor<bool, D>& x, const Dims& dims = {}, bool keep_dims = false);
template <typename D>
TRIREME_EXPORT Tensor<bool, D> all(const Tensor<bool, D>& x, const Dims& dims = {}, bool keep_dims = false);

namespace ops {

enum class Reduction : std::uint8_t { sum, mean, prod, max, min, var, stddev, norm1, norm2, norm_inf };

std::string_view operation_name(Reduction kind);  // "mean"; "norm" of all three

Reduction norm_of(double p);  // 1, 2 or infinity

struct ReductionOptions {
  Reduction kind = Reduction::sum;
  Dims dims = {};         // all where none is named
  double correction = 1;  // of var and stddev
};

// `shape` without these dims, or with 1 in their places. `op` stands in the text of an error.
Shape reduced_shape(std::string_view op, const Shape& shape, const Dims& dims, bool keep_dims);

// y: reduced_shape(), with or without the dims. Integers have sum, max and min.
template <typename T, typename D>
TRIREME_EXPORT void reduce(const ReductionOptions& options, const Tensor<T, D>& x, Tensor<SumOf<T>, D>& y);

// From x, which sum and mean do not read, and the result y, which max, min, stddev and the norms read. Elements that
// share the maximum share its gradient equally; that of a norm or deviation of 0 is 0; that of a product is right where
// elements are 0. For float, double, bfloat16 and float16.
template <typename T, typename D>
TRIREME_EXPORT void reduce_backward(const ReductionOptions& options, const Tensor<T, D>& x, const Tensor<T, D>& y,
                                    const Tensor<T, D>& dy, Tensor<T, D>& dx, bool accumulate);

// y = log(sum(exp(x))) as reduce(). exponentials[2, results]: the largest elements, 0 where they are infinite, and the sums of
// exp(x - these), kept for the backward pass.
template <typename T, typename D>
TRIREME_EXPORT void logsumexp(const Dims& dims, const Tensor<T, D>& x, Tensor<T, D>& y, Tensor<double, D>& exponentials);

// dx = dy * softmax(x), or += that; 0 where all x are -infinity.
template <typename T, typename D>
TRIREME_EXPORT void logsumexp_backward(const Dims& dims, const Tensor<T, D>& x, const Tensor<double, D>& exponentials,
                                       const Tensor<T, D>& dy, Tensor<T, D>& dx, bool accumulate);

}  // namespace ops
}  // namespace trireme
