#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

#include "gradient_sets.hpp"

// A backward pass that keeps the core busy: for each gradient it computes for a fixed time, then writes its elements. Only the
// thread's own computing time counts: time in which other work takes its core comes on top. The core's speed makes no
// difference.
class Backward {
 public:
  Backward(std::span<const GradientSize> gradients, std::span<float> values, double seconds);  // 0: only writes the gradients

  void compute(std::size_t index) const;  // the arithmetic before the gradient is written

  // After each gradient calls on_final(its index).
  void run(const std::function<void(std::size_t)>& on_final) const;

 private:
  std::span<const GradientSize> gradients_;
  std::span<float> values_;
  std::vector<double> seconds_;  // by gradient
};
