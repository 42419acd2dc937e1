#pragma once

#include <cstdint>
#include <string_view>

#include "trireme/autograd/variable.hpp"
#include "trireme/core/bfloat16.hpp"
#include "trireme/core/export.hpp"

namespace trireme TRIREME_EXPORT {

// Where the scale of an operand of an 8-bit product comes from: Micikevicius et al. 2022, arXiv 2209.05433.
enum class Float8Scaling : std::uint8_t {
  none,     // the product is none of 8-bit operands
  current,  // from its own largest element, for which it is read once more
  delayed,  // from the largest elements of earlier calls; what has grown beyond them becomes the largest value
};

Float8Scaling float8_scaling_named(std::string_view name);  // as above; an error for any other

// What delayed scaling keeps of earlier calls: the largest magnitudes of each operand [length], the newest first.
template <typename D = Cpu>
struct Float8History {
  Tensor<float, D> x;  // undefined, as the others: current scaling
  Tensor<float, D> weight;
  Tensor<float, D> dy;
  bool update = true;  // false: the call leaves them alone
};

// linear() by products of 8-bit operands (ops/matmul/float8.hpp): x and the weight become e4m3, the gradient of y e5m2, and the
// weight's own gradient is float. The rows of x, in and out are multiples of 16.
template <typename D>
TRIREME_EXPORT Variable<bfloat16, D> float8_linear(const Variable<bfloat16, D>& x, const Variable<bfloat16, D, float>& weight,
                                                   const Variable<float, D>& bias, const Float8History<D>& history = {});

}  // namespace trireme
