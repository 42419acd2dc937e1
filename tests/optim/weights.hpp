#pragma once

#include <utility>
#include <vector>

#include "trireme/autograd/flat_store.hpp"
#include "trireme/autograd/model.hpp"
#include "trireme/core/step_summary.hpp"

namespace trireme::tests {

// A model of three parameters, and a summary of a step.
struct Weights {
  Model model{DType::float32};
  FlatStore& store = model.store();
  int bias = store.add("bias", {16}, Initializer::constant(1));
  int weight = store.add("weight", {4, 8}, Initializer::constant(1));
  int last = store.add("last", {5, 7}, Initializer::constant(1));
  Weights() { store.initialize<float>(1); }

  StepSummary summary(std::vector<bool> used = {true, true, true}) const {
    return {.target_weight = 1, .gradient_scale = 2, .gradient_norm = 4, .used = std::move(used)};
  }
};

}  // namespace trireme::tests
