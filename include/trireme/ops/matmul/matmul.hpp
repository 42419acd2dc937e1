#pragma once

#include <concepts>
#include <cstdint>

#include "trireme/core/dtype.hpp"
#include "trireme/core/export.hpp"
#include "trireme/tensor/tensor.hpp"

namespace trireme TRIREME_EXPORT {
namespace ops {

struct MatmulOptions {
  bool transpose_a = false;
  bool transpose_b = false;
  bool accumulate = false;  // c += a b instead of c = a b
};

// c[m, n] = a[m, k] b[k, n], through oneDNN or cuBLASLt. Leading dims are folded into rows: a tensor [..., n] is the matrix
// [rows, n]; a transposed operand is stored as [k, m] or [n, k]. T: float, double, bfloat16, float16; for the last two, sums
// are in float, and c is T or float. Types that the processor can't multiply are converted to float.
template <typename T, typename C, typename D>
requires(std::same_as<C, T> || std::same_as<C, Accumulate<T>>) TRIREME_EXPORT
    void matmul(const Tensor<T, D>& a, const Tensor<T, D>& b, Tensor<C, D>& c, MatmulOptions options = {});

// inference: no gradient is computed from the result. On CPUs, float products of up to 8 rows then use a faster order of
// additions. With this order, a row has the same bits for any number of rows up to 8.
enum class LinearUse : std::uint8_t { training, inference };

// y[rows, out] = x[rows, in] weight[out, in]^T + bias[out]; an undefined bias adds nothing. If T is bfloat16 or float16, a GPU
// first rounds the bias to T.
template <typename T, typename D>
TRIREME_EXPORT void linear(const Tensor<T, D>& x, const Tensor<T, D>& weight, const Tensor<Accumulate<T>, D>& bias,
                           Tensor<T, D>& y, LinearUse use = LinearUse::training);

}  // namespace ops
}  // namespace trireme
