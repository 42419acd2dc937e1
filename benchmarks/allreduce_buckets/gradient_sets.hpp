#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "trireme/core/shape.hpp"

// The gradient of one parameter. Lists of them are in the order in which backward finishes them.
struct GradientSize {
  trireme::Shape shape;
  double work = 0;  // multiply-adds of backward for this gradient, in any unit
};

// "gpt" (10.9M parameters: 6 layers, width 384), "gpt2" (124M), "resnet18" (11.7M), "resnet50" (25.6M).
std::vector<GradientSize> gradient_set(const std::string& name);
std::vector<GradientSize> uniform_gradients(std::int64_t elements);  // 64 matrices of 256 columns, at least so many elements
std::vector<std::string> gradient_set_names();
