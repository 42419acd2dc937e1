#pragma once

#include <vector>

#include "catch.hpp"
#include "trireme/core/philox.hpp"
#include "trireme/testing/gradient_check.hpp"

// Helpers for tests of gradients.
namespace trireme::tests {

// Normally distributed; depends only on stream and index.
template <typename T = double>
Tensor<T> random(const Shape& shape, std::uint64_t stream) {
  Tensor<T> tensor(shape);
  for (std::int64_t index = 0; index < tensor.numel(); ++index) {
    const double element = philox_normal(11, stream, static_cast<std::uint64_t>(index));
    tensor.data()[index] = static_cast<T>(static_cast<Accumulate<T>>(element));
  }
  return tensor;
}

using Inputs = std::vector<Variable<double>>;

template <typename T>
std::vector<T> elements(const Tensor<T>& tensor) {
  return {tensor.span().begin(), tensor.span().end()};
}

inline void expect_passed(const testing::GradientCheck& check) {
  INFO(check.where);
  CHECK(check.passed);
}

}  // namespace trireme::tests
