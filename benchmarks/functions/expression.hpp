#pragma once

#include "trireme/tensor/tensor.hpp"

// x * sigmoid(x) * y + exp(-y), five operations in one pass.
trireme::Tensor<float> expression(const trireme::Tensor<float>& x, const trireme::Tensor<float>& y);
