#pragma once

#include "trireme/core/bfloat16.hpp"
#include "trireme/core/export.hpp"
#include "trireme/core/float8.hpp"
#include "trireme/tensor/tensor.hpp"

// Matrix products of 8-bit operands, each with one scale for all its elements (Micikevicius et al. 2022, arXiv 2209.05433).
// Scales and amaxes are computed in the memory of the tensors, so the host never waits.
namespace trireme TRIREME_EXPORT {
namespace ops {

inline constexpr std::int64_t float8_multiple = 16;  // all dims of operands are multiples of this number

// result[1] = the largest absolute value of x's finite elements, 0 if there are none. T: float, bfloat16.
template <typename T, typename D>
TRIREME_EXPORT void amax(const Tensor<T, D>& x, Tensor<float, D>& result);

// scale[2] = {1 / factor, factor}. factor is the largest power of two for which factor * max(amaxes) is at most F's largest
// value, or 1 if all amaxes are 0. With x's own amax this is current scaling. The inverse comes first because cuBLASLt reads
// the inverse, which must be aligned.
template <typename F, typename D>
TRIREME_EXPORT void float8_scale(const Tensor<float, D>& amaxes, Tensor<float, D>& scale);

// Delayed scaling: computes the scale from the amaxes of earlier tensors, so that x is read only once, by quantize(). If all
// these amaxes are 0, as in the first step, the scale is computed from x's own amax.
template <typename F, typename T, typename D>
TRIREME_EXPORT void delayed_float8_scale(const Tensor<T, D>& x, const Tensor<float, D>& history, Tensor<float, D>& scale);

// Inserts amax at the start of history[length] and drops the oldest element.
template <typename D>
TRIREME_EXPORT void push_amax(const Tensor<float, D>& amax, Tensor<float, D>& history);

// Codes are x * factor, rounded to the nearest, ties to even. Too large values become F's largest value. inf and NaN become
// NaN, so that an infinite gradient is not mistaken for a large gradient. The leading dims of x are folded into rows: x[rows,
// columns]. rows and columns are multiples of 16.
template <typename F, typename D = Cpu>
struct Quantized {
  Tensor<F, D> codes;       // [rows, columns]
  Tensor<F, D> transposed;  // [columns, rows]; an undefined transposed or codes is not computed
  Tensor<float, D> scale;   // [2], from float8_scale() or delayed_float8_scale()
  Tensor<float, D> amax{};  // [1], the amax of x; undefined: not computed
};
template <typename T, typename F, typename D>
TRIREME_EXPORT void quantize(const Tensor<T, D>& x, const Quantized<F, D>& y);

// An operand in the layout that float8_matmul() needs: `codes` or `transposed` of Quantized.
template <typename F, typename D = Cpu>
struct Float8Operand {
  Tensor<F, D> codes;
  Tensor<float, D> scale;
};

// c[m, n] = a[m, k] b[n, k]^T + bias[n]; an undefined bias adds nothing. With `accumulate` the product is added to c, and bias
// must be undefined. All dims are multiples of 16. F: float8_e4m3 or float8_e5m2. C: bfloat16, or float without a bias. A GPU
// needs compute capability 8.9; it uses cuBLASLt and first rounds the bias to bfloat16. cuBLASLt sums with fewer bits if both
// operands are e4m3. A CPU converts the operands to float.
template <typename F, typename C, typename D>
TRIREME_EXPORT void float8_matmul(const Float8Operand<F, D>& a, const Float8Operand<float8_e4m3, D>& b,
                                  const Tensor<float, D>& bias, Tensor<C, D>& c, bool accumulate = false);

}  // namespace ops
}  // namespace trireme
