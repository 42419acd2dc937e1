#pragma once

#include "trireme/autograd/variable.hpp"
#include "trireme/core/bfloat16.hpp"

namespace trireme {

// linear() by products of 8-bit operands (ops/float8.hpp) with current scaling: x and the weight become e4m3, the gradient of y
// e5m2, and the weight's own gradient is float. The rows of x, in and out are multiples of 16.
template <typename D>
Variable<bfloat16, D> float8_linear(const Variable<bfloat16, D>& x, const Variable<bfloat16, D, float>& weight,
                                    const Variable<float, D>& bias);

}  // namespace trireme
