#pragma once

#include "trireme/autograd/variable.hpp"

// Expressions that nvcc compiles, for the test of map() on a GPU.
namespace trireme::tests {

template <typename T, typename D>
Variable<T, D> gated(const Variable<T, D>& gate, const Variable<T, D>& up);

Tensor<float, Cuda> halves_of_squares(const Tensor<float, Cuda>& x);

}  // namespace trireme::tests
