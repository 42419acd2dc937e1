#pragma once

#include <string>
#include <vector>

#include "gradient_check.hpp"

namespace trireme::tests {

// A function of include/trireme/autograd and operands for it.
struct FunctionCase {
  std::string name;
  std::vector<Tensor<double>> operands;
  testing::CheckedFunction call;
};

std::vector<FunctionCase> function_cases();  // of every function

}  // namespace trireme::tests
