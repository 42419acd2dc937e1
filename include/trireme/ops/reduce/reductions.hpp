#pragma once

#include <cstdint>
#include <string_view>
#include <type_traits>

#include "trireme/core/dims.hpp"
#include "trireme/core/dtype.hpp"
#include "trireme/core/export.hpp"
#include "trireme/tensor/tensor.hpp"

// Sums, means, maxima and norms of a tensor over any of its dims, by default all of them:
//
//   const auto x = Tensor<float>::from({2, 3}, {1, 2, 3, 4, 5, 6});
//   sum(x);           // 21, of shape []
//   sum(x, 0);        // {5, 7, 9}
//   max(x, -1);       // {3, 6}
//   mean(x, 1, true)  // {{2}, {5}}, of shape [2, 1]
//
// With keep_dims the dims stay, with extent 1. Integers are summed in std::int64_t, all floats in double. A CPU first adds
// groups of four elements in float, unless T is double. The order of the additions depends only on the sizes, so on a CPU the
// bits do not depend on the number of threads. Dims that are not neighbours cost a permuted copy of x. Functions of Variables
// have the same names (autograd/operations/reduce.hpp).
namespace trireme TRIREME_EXPORT {

// The type of a sum of elements of type T: std::int64_t for integers and bool, T itself for floats.
template <typename T>
using SumOf = std::conditional_t<std::is_integral_v<T>, std::int64_t, T>;

// 0 if there are no elements. T: float, double, bfloat16, float16, std::int32_t, std::int64_t or bool. For bool, sum() counts
// the true elements.
template <typename T, typename D>
TRIREME_EXPORT Tensor<SumOf<T>, D> sum(const Tensor<T, D>& x, const Dims& dims = {}, bool keep_dims = false);

// The largest and the smallest element; NaN if an element is NaN, an Error if there are no elements. T: float, double,
// bfloat16, float16, std::int32_t, std::int64_t. max_with_index() of ops/search/search.hpp also returns the index.
template <typename T, typename D>
TRIREME_EXPORT Tensor<T, D> max(const Tensor<T, D>& x, const Dims& dims = {}, bool keep_dims = false);
template <typename T, typename D>
TRIREME_EXPORT Tensor<T, D> min(const Tensor<T, D>& x, const Dims& dims = {}, bool keep_dims = false);

// The functions that follow are for float, double, bfloat16 and float16.

template <typename T, typename D>
TRIREME_EXPORT Tensor<T, D> mean(const Tensor<T, D>& x, const Dims& dims = {}, bool keep_dims = false);  // NaN without elements

template <typename T, typename D>
TRIREME_EXPORT Tensor<T, D> prod(const Tensor<T, D>& x, const Dims& dims = {}, bool keep_dims = false);  // 1 without elements

// log(sum(exp(x))), without overflow: the largest element is subtracted first. -infinity if there are no elements.
template <typename T, typename D>
TRIREME_EXPORT Tensor<T, D> logsumexp(const Tensor<T, D>& x, const Dims& dims = {}, bool keep_dims = false);

// The variance sum((x - mean(x))^2) / max(0, n - correction) of n elements, and its square root, which torch calls std.
// correction is 0 for a whole population, and 1 for a sample of a population.
template <typename T, typename D>
TRIREME_EXPORT Tensor<T, D> var(const Tensor<T, D>& x, const Dims& dims = {}, bool keep_dims = false, double correction = 1);
template <typename T, typename D>
TRIREME_EXPORT Tensor<T, D> stddev(const Tensor<T, D>& x, const Dims& dims = {}, bool keep_dims = false, double correction = 1);

// p = 1: sum(|x|); 2: sqrt(sum(x^2)); infinity: max(|x|), an Error if there are no elements. Another p is an Error.
template <typename T, typename D>
TRIREME_EXPORT Tensor<T, D> norm(const Tensor<T, D>& x, double p = 2, const Dims& dims = {}, bool keep_dims = false);

// Whether any element is true (false if there are no elements), and whether all elements are true (true if there are none).
template <typename D>
TRIREME_EXPORT Tensor<bool, D> any(const Tensor<bool, D>& x, const Dims& dims = {}, bool keep_dims = false);
template <typename D>
TRIREME_EXPORT Tensor<bool, D> all(const Tensor<bool, D>& x, const Dims& dims = {}, bool keep_dims = false);

namespace ops {

enum class Reduction : std::uint8_t { sum, mean, prod, max, min, var, stddev, norm1, norm2, norm_inf };

std::string_view operation_name(Reduction kind);  // "mean"; "norm" for all three norms

Reduction norm_of(double p);  // 1, 2 or infinity

struct ReductionOptions {
  Reduction kind = Reduction::sum;
  Dims dims = {};         // empty: all dims
  double correction = 1;  // of var and stddev
};

// `shape` without these dims, or with extent 1 in their places. Messages of errors begin with `op`.
Shape reduced_shape(std::string_view op, const Shape& shape, const Dims& dims, bool keep_dims);

// y has the shape reduced_shape(), with or without keep_dims. Integers have only sum, max and min.
template <typename T, typename D>
TRIREME_EXPORT void reduce(const ReductionOptions& options, const Tensor<T, D>& x, Tensor<SumOf<T>, D>& y);

// sum and mean do not read x; max, min, stddev and the norms read the result y. Elements that are equal to the maximum share
// its gradient equally. The gradient of a norm or deviation of 0 is 0. The gradient of a product is correct also if elements
// are 0. For float, double, bfloat16 and float16.
template <typename T, typename D>
TRIREME_EXPORT void reduce_backward(const ReductionOptions& options, const Tensor<T, D>& x, const Tensor<T, D>& y,
                                    const Tensor<T, D>& dy, Tensor<T, D>& dx, bool accumulate);

// y = log(sum(exp(x))), with the shapes of reduce(). exponentials[2, results]: the largest elements, 0 where they are infinite,
// and the sums of exp(x - largest), kept for the backward pass.
template <typename T, typename D>
TRIREME_EXPORT void logsumexp(const Dims& dims, const Tensor<T, D>& x, Tensor<T, D>& y, Tensor<double, D>& exponentials);

// dx = dy * softmax(x), or += with `accumulate`; 0 where all x are -infinity.
template <typename T, typename D>
TRIREME_EXPORT void logsumexp_backward(const Dims& dims, const Tensor<T, D>& x, const Tensor<double, D>& exponentials,
                                       const Tensor<T, D>& dy, Tensor<T, D>& dx, bool accumulate);

}  // namespace ops
}  // namespace trireme
