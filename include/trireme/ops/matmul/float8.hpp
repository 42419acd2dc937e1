#pragma once

#include "trireme/core/bfloat16.hpp"
#include "trireme/core/export.hpp"
#include "trireme/core/float8.hpp"
#include "trireme/tensor/tensor.hpp"

// Matrix products of 8-bit operands, each with one scale for all its elements: Micikevicius et al. 2022, arXiv 2209.05433.
// Every number here is made where the tensors lie: the host waits for nothing.
namespace trireme TRIREME_EXPORT {
namespace ops {

inline constexpr std::int64_t float8_multiple = 16;  // of all dims of operands

// result[1] = the largest absolute value of x's finite elements, 0 where there is none. T: float, bfloat16.
template <typename T, typename D>
TRIREME_EXPORT void amax(const Tensor<T, D>& x, Tensor<float, D>& result);

// scale[2] = 1 / factor and the factor, the largest power of two that takes the largest of all `amaxes` to at most F's largest
// value; 1 where they are 0. Of x's own amax: current scaling. The inverse stands first, as cuBLASLt reads it and wants it
// aligned.
template <typename F, typename D>
TRIREME_EXPORT void float8_scale(const Tensor<float, D>& amaxes, Tensor<float, D>& scale);

// The same of the amaxes of older tensors, so that x is read but once, by quantize(): delayed scaling. Where they are all 0, as
// at first, of x's own.
template <typename F, typename T, typename D>
TRIREME_EXPORT void delayed_float8_scale(const Tensor<T, D>& x, const Tensor<float, D>& history, Tensor<float, D>& scale);

// history[length]: the newest first, the oldest falls out.
template <typename D>
TRIREME_EXPORT void push_amax(const Tensor<float, D>& amax, Tensor<float, D>& history);

// Elements are x * factor to the nearest, ties to even. What is too large becomes the largest, what is not finite NaN: an
// infinite gradient must not pass for a large one. x[rows, columns] is a tensor with its leading dims folded; both are
// multiples of 16.
template <typename F, typename D = Cpu>
struct Quantized {
  Tensor<F, D> codes;       // [rows, columns]
  Tensor<F, D> transposed;  // [columns, rows]; undefined: not wanted, likewise codes
  Tensor<float, D> scale;   // [2], from float8_scale() or delayed_float8_scale()
  Tensor<float, D> amax{};  // [1], x's own as amax() finds it; undefined: not wanted
};
template <typename T, typename F, typename D>
TRIREME_EXPORT void quantize(const Tensor<T, D>& x, const Quantized<F, D>& y);

// An operand as it stands in memory: codes or transposed of what quantize() made.
template <typename F, typename D = Cpu>
struct Float8Operand {
  Tensor<F, D> codes;
  Tensor<float, D> scale;
};

// c[m, n] = a[m, k] b[n, k]^T + bias[n], or without a bias added to c; all dims are multiples of 16, an undefined bias adds
// nothing. F: either type, C: bfloat16, or float, which takes no bias. A GPU needs compute capability 8.9 and multiplies
// through cuBLASLt, with fewer bits in the sums where both are e4m3; it rounds the bias to bfloat16 first. The CPU converts to
// float.
template <typename F, typename C, typename D>
TRIREME_EXPORT void float8_matmul(const Float8Operand<F, D>& a, const Float8Operand<float8_e4m3, D>& b,
                                  const Tensor<float, D>& bias, Tensor<C, D>& c, bool accumulate = false);

}  // namespace ops
}  // namespace trireme
