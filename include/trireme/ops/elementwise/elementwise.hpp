#pragma once

#include "trireme/core/dtype.hpp"
#include "trireme/core/export.hpp"
#include "trireme/ops/elementwise/elementwise_options.hpp"
#include "trireme/tensor/tensor.hpp"

// Elementwise operations for float, double, bfloat16 and float16. Outputs may be the inputs. `accumulate` adds to the output
// instead of overwriting it.
namespace trireme TRIREME_EXPORT {
namespace ops {

template <typename T, typename D>
TRIREME_EXPORT void activation(Activation kind, const Tensor<T, D>& x, Tensor<T, D>& y);

// dx = dy * derivative at x, the input of the forward pass.
template <typename T, typename D>
TRIREME_EXPORT void activation_backward(Activation kind, const Tensor<T, D>& x, const Tensor<T, D>& dy, Tensor<T, D>& dx,
                                        bool accumulate);

// y = activation(gate) * x. An undefined gradient is not computed. Gradients must not share memory with inputs.
template <typename T, typename D>
TRIREME_EXPORT void gated_activation(Activation kind, const Tensor<T, D>& gate, const Tensor<T, D>& x, Tensor<T, D>& y);
template <typename T, typename D>
TRIREME_EXPORT void gated_activation_backward(Activation kind, const Tensor<T, D>& gate, const Tensor<T, D>& x,
                                              const Tensor<T, D>& dy, Tensor<T, D>& dgate, bool accumulate_gate,
                                              Tensor<T, D>& dx, bool accumulate);

template <typename T, typename D>
TRIREME_EXPORT void add(const Tensor<T, D>& a, const Tensor<T, D>& b, Tensor<T, D>& c);

template <typename T, typename D>
TRIREME_EXPORT void subtract(const Tensor<T, D>& a, const Tensor<T, D>& b, Tensor<T, D>& c);

template <typename T, typename D>
TRIREME_EXPORT void multiply(const Tensor<T, D>& a, const Tensor<T, D>& b, Tensor<T, D>& c, bool accumulate = false);

template <typename T, typename D>
TRIREME_EXPORT void divide(const Tensor<T, D>& a, const Tensor<T, D>& b, Tensor<T, D>& c, bool accumulate = false);

// The gradient of the divisor: db = -dy * a / b^2. The gradient of the dividend is divide(dy, b, da).
template <typename T, typename D>
TRIREME_EXPORT void divide_backward_divisor(const Tensor<T, D>& a, const Tensor<T, D>& b, const Tensor<T, D>& dy,
                                            Tensor<T, D>& db, bool accumulate);

template <typename T, typename D>
TRIREME_EXPORT void shift(const Tensor<T, D>& a, Accumulate<T> summand, Tensor<T, D>& c);  // c = a + summand

template <typename T, typename D>
TRIREME_EXPORT void scale(const Tensor<T, D>& a, Accumulate<T> factor, Tensor<T, D>& c, bool accumulate = false);

// y = x if x is above 0, otherwise slope * x. The backward function is like activation_backward.
template <typename T, typename D>
TRIREME_EXPORT void leaky_relu(const Tensor<T, D>& x, double slope, Tensor<T, D>& y);
template <typename T, typename D>
TRIREME_EXPORT void leaky_relu_backward(const Tensor<T, D>& x, double slope, const Tensor<T, D>& dy, Tensor<T, D>& dx,
                                        bool accumulate);

// SoftplusOptions has the formula. The backward function is like activation_backward.
template <typename T, typename D>
TRIREME_EXPORT void softplus(const Tensor<T, D>& x, const SoftplusOptions& options, Tensor<T, D>& y);
template <typename T, typename D>
TRIREME_EXPORT void softplus_backward(const Tensor<T, D>& x, const SoftplusOptions& options, const Tensor<T, D>& dy,
                                      Tensor<T, D>& dx, bool accumulate);

// y = x / (1 - probability) for kept elements, 0 for the other elements; NaN stays NaN. The backward pass is the same call on
// dy with the same key.
template <typename T, typename D>
TRIREME_EXPORT void dropout(const Tensor<T, D>& x, double probability, const RandomKey& key, Tensor<T, D>& y,
                            bool accumulate = false);

}  // namespace ops
}  // namespace trireme
