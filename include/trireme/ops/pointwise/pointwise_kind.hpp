#pragma once

#include <cstdint>
#include <string_view>

#include "trireme/core/export.hpp"

// The operations of ops/pointwise/pointwise.hpp.

// Operations of one operand, as X(name). Each is an enumerator of ops::Unary, has its formula in
// src/ops/pointwise/unary_body.hpp, and is a function on Tensors and Variables (ops/pointwise/functions.hpp).
// TRIREME_EACH_NUMBER_UNARY and clamp also accept integers.
//   sign   -1, 0 or 1; NaN for NaN
//   round  to the nearest integer, ties to even
//   clamp  to [first, second]: min(max(x, first), second)
//   elu    x if x > 0, otherwise first * (exp(x) - 1). Clevert, Unterthiner, Hochreiter 2015, arXiv 1511.07289
//   selu   elu of a fixed alpha, times a fixed scale. Klambauer et al. 2017, arXiv 1706.02515
//   mish   x * tanh(log(1 + exp(x))). Misra 2019, arXiv 1908.08681
#define TRIREME_EACH_NUMBER_UNARY(X) \
  X(abs)                             \
  X(neg)                             \
  X(sign)                            \
  X(square)
#define TRIREME_EACH_FLOAT_UNARY(X) \
  X(exp)                            \
  X(expm1)                          \
  X(log)                            \
  X(log1p)                          \
  X(sqrt)                           \
  X(rsqrt)                          \
  X(reciprocal)                     \
  X(sin)                            \
  X(cos)                            \
  X(erf)                            \
  X(floor)                          \
  X(ceil)                           \
  X(round)                          \
  X(selu)                           \
  X(mish)                           \
  X(hardswish)                      \
  X(hardsigmoid)                    \
  X(relu6)                          \
  X(softsign)                       \
  X(logsigmoid)
#define TRIREME_EACH_UNARY(X)  \
  TRIREME_EACH_NUMBER_UNARY(X) \
  X(clamp)                     \
  X(elu)                       \
  TRIREME_EACH_FLOAT_UNARY(X)

namespace trireme TRIREME_EXPORT {
namespace ops {

// Operations of two operands. minimum and maximum are NaN where an operand is NaN.
enum class Binary : std::uint8_t { add, subtract, multiply, divide, minimum, maximum, pow };

enum class Unary : std::uint8_t {
#define TRIREME_ENUMERATOR(name) name,
  TRIREME_EACH_UNARY(TRIREME_ENUMERATOR)
#undef TRIREME_ENUMERATOR
};

// The parameters of clamp and elu (above); other operations have none.
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
