#pragma once

#include <functional>
#include <string>
#include <vector>

#include "trireme/core/export.hpp"
#include "trireme/nn/base/module.hpp"

// For tests of your own layers and operations; no test framework is needed.
namespace trireme TRIREME_EXPORT {
namespace testing {

struct GradientCheckOptions {
  double step = 1e-5;       // of the central difference
  double tolerance = 1e-6;  // of |tape - difference| / max(1, |difference|)
  std::uint64_t seed = 1;   // of the upstream gradient, a random number for each element
  TapeOptions tape = {};
};

struct GradientCheck {
  double largest_error = 0;
  std::string where = {};  // "input 1, element 17: tape 0.25, difference 0.5"
  bool passed = false;
};

using CheckedFunction = std::function<Variable<double>(const std::vector<Variable<double>>&)>;

// Compares the tape's gradients for all elements of `inputs` with central finite differences in double.
GradientCheck check_gradients(const CheckedFunction& function, const std::vector<Tensor<double>>& inputs,
                              const GradientCheckOptions& options = {});

// Compares the gradients of all trainable parameters of a model. `function` uses the model.
GradientCheck check_parameter_gradients(FlatStore& store, const std::function<Variable<double>()>& function,
                                        const GradientCheckOptions& options = {});

}  // namespace testing
}  // namespace trireme
