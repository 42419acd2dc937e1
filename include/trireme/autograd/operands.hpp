#pragma once

#include <initializer_list>
#include <string_view>

#include "trireme/autograd/variable.hpp"

namespace trireme {

namespace detail {

struct OperandThatMayBeUndefined {};

template <typename T, typename D>
bool is_given(const Tensor<T, D>& operand) {
  return operand.defined();
}
template <typename T, typename D, typename G>
bool is_given(const Variable<T, D, G>& operand) {
  return operand.value().defined();
}
inline bool is_given(OperandThatMayBeUndefined) { return true; }

[[noreturn]] void throw_undefined_operand(std::string_view operation, std::initializer_list<bool> given);

}  // namespace detail

// Marks an operand that may be undefined, as a layer's bias.
template <typename Operand>
detail::OperandThatMayBeUndefined optional(const Operand&) {
  return {};
}

// The first line of every operation, with all its variables and tensors in their order: an undefined one looks like a scalar
// but holds nothing. "add: operand 1 of 2 is undefined".
//
//   require_operands("linear", x, weight, optional(bias));
template <typename... Operand>
void require_operands(std::string_view operation, const Operand&... operands) {
  if (!(detail::is_given(operands) && ...)) [[unlikely]] {
    detail::throw_undefined_operand(operation, {detail::is_given(operands)...});
  }
}

}  // namespace trireme
