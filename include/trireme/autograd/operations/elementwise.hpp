#pragma once

#include <cstdint>
#include <string_view>

#include "trireme/autograd/variable.hpp"
#include "trireme/core/export.hpp"
#include "trireme/ops/elementwise/elementwise.hpp"
#include "trireme/ops/elementwise/rotary.hpp"

// Operations on Variables, element by element. Each call computes its result immediately and records its backward pass on the
// current tape. An operand that is undefined is an error. T: float, double, bfloat16, float16. The functions of pointwise.hpp
// take Tensors too.
namespace trireme TRIREME_EXPORT {

// Casts x between float and another element type; returns x if x has the type already.
template <typename To, typename From, typename D>
TRIREME_EXPORT Variable<To, D> cast(const Variable<From, D>& x);

// Element by element; shapes are broadcast. Also available as operators: a + b, a - b, a * b, a / b
// (autograd/composed/operators.hpp).
template <typename T, typename D>
TRIREME_EXPORT Variable<T, D> add(const Variable<T, D>& a, const Variable<T, D>& b);
template <typename T, typename D>
TRIREME_EXPORT Variable<T, D> subtract(const Variable<T, D>& a, const Variable<T, D>& b);
template <typename T, typename D>
TRIREME_EXPORT Variable<T, D> multiply(const Variable<T, D>& a, const Variable<T, D>& b);
template <typename T, typename D>
TRIREME_EXPORT Variable<T, D> divide(const Variable<T, D>& a, const Variable<T, D>& b);

template <typename T, typename D>
TRIREME_EXPORT Variable<T, D> shift(const Variable<T, D>& x, Accumulate<T> summand);  // x + summand

template <typename T, typename D>
TRIREME_EXPORT Variable<T, D> scale(const Variable<T, D>& x, Accumulate<T> factor);

template <typename T, typename D>
TRIREME_EXPORT Variable<T, D> activation(ops::Activation kind, const Variable<T, D>& x);
template <typename T, typename D>
Variable<T, D> relu(const Variable<T, D>& x) {
  return activation(ops::Activation::relu, x);
}
template <typename T, typename D>
Variable<T, D> tanh(const Variable<T, D>& x) {
  return activation(ops::Activation::tanh, x);
}
template <typename T, typename D>
Variable<T, D> sigmoid(const Variable<T, D>& x) {
  return activation(ops::Activation::sigmoid, x);
}
template <typename T, typename D>
Variable<T, D> gelu(const Variable<T, D>& x) {  // the tanh form, as GPT-2
  return activation(ops::Activation::gelu_tanh, x);
}

template <typename T, typename D>
Variable<T, D> gelu_erf(const Variable<T, D>& x) {  // the exact form
  return activation(ops::Activation::gelu_erf, x);
}
template <typename T, typename D>
Variable<T, D> silu(const Variable<T, D>& x) {
  return activation(ops::Activation::silu, x);
}
// activation(gate) * x; gate and x have equal shapes (Shazeer 2020, arXiv 2002.05202). Keeps gate and x for the backward pass,
// not the activation's value.
template <typename T, typename D>
TRIREME_EXPORT Variable<T, D> gated_activation(ops::Activation kind, const Variable<T, D>& gate, const Variable<T, D>& x);
template <typename T, typename D>
TRIREME_EXPORT Variable<T, D> leaky_relu(const Variable<T, D>& x, double slope = 0.01);
template <typename T, typename D>
TRIREME_EXPORT Variable<T, D> softplus(const Variable<T, D>& x, const ops::SoftplusOptions& options = {});

// How dim 0 of a variable relates to the samples of the tape's micro-batch.
struct DropoutRows {
  std::int64_t per_sample = 0;  // rows of one sample; 0: the micro-batch's rows / TapeOptions::samples
  std::int64_t first = 0;       // rows of the micro-batch before the variable's rows
  std::int64_t all = 0;         // rows of the micro-batch; 0: the variable's rows
};

// Dim 0 of x holds one sample after the other, each with the same number of rows (channels, patches, windows). The choice of
// elements to drop never depends on how samples are spread over ranks. It depends only on
//   - the tape's seed and step,
//   - `stream`, and the number of earlier calls of this stream in the micro-batch,
//   - the sample, and the element's place in the sample.
// A tape without TapeOptions is an error. TapeOptions without `samples` are an error too, unless first_sample is 0. Without a
// tape, as in evaluation, dropout() returns x.
template <typename T, typename D>
TRIREME_EXPORT Variable<T, D> dropout(const Variable<T, D>& x, double probability, std::string_view stream,
                                      const DropoutRows& rows = {});

// Rotary positions in the first heads of packed [batch, time, width]; see ops/elementwise/rotary.hpp.
template <typename T, typename D>
TRIREME_EXPORT Variable<T, D> rotary(const Variable<T, D>& x, const ops::RotaryOptions& options,
                                     const Tensor<std::int32_t, D>& document_starts = {});

}  // namespace trireme
