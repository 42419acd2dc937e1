#pragma once

#include "ops/base/scalar_argument.hpp"
#include "trireme/tensor/scalar.hpp"

namespace trireme::ops {

template <typename T, typename D>
ScalarArgument<T> argument_of(const Scalar<T, D>& number) {
  return {.value = number.known(), .element = number.element().data()};
}

}  // namespace trireme::ops
