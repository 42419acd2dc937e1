#pragma once

#include <cstdint>
#include <string_view>

#include "trireme/core/export.hpp"

// Which operations ops/pointwise/pointwise.hpp has.
namespace trireme TRIREME_EXPORT {
namespace ops {

// Of two operands. minimum and maximum are NaN where an operand is.
enum class Binary : std::uint8_t { add, subtract, multiply, divide, minimum, maximum, pow };

// Of one. Those behind `square` have no whole numbers.
enum class Unary : std::uint8_t {
  abs,
  neg,
  sign,   // -1, 0 or 1; of a NaN a NaN
  clamp,  // to [first, second], as the smaller of `second` and the larger of x and `first`
  square,
  exp,
  expm1,
  log,
  log1p,
  sqrt,
  rsqrt,
  reciprocal,
  sin,
  cos,
  erf,
  floor,
  ceil,
  round,  // to the nearest, ties to even
  elu,    // x above 0, first * (exp(x) - 1) below. Clevert, Unterthiner, Hochreiter 2015, arXiv 1511.07289
  mish,   // x * tanh(log(1 + exp(x))). Misra 2019, arXiv 1908.08681
  hardswish,
  hardsigmoid,
  relu6,
  softsign,
  logsigmoid,
};

// What a Unary is told, as it says.
struct UnaryNumbers {
  double first = 0;
  double second = 0;
};

enum class Comparison : std::uint8_t { eq, ne, lt, le, gt, ge };
enum class FloatTest : std::uint8_t { isnan, isinf, isfinite };
enum class Logical : std::uint8_t { logical_and, logical_or, logical_xor };

enum class Side : std::uint8_t { left, right };  // one of two operands

std::string_view name_of(Binary kind);  // "add"
std::string_view name_of(Unary kind);
std::string_view name_of(Comparison kind);
std::string_view name_of(FloatTest kind);
std::string_view name_of(Logical kind);

}  // namespace ops
}  // namespace trireme
