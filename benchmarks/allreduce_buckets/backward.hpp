#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

#include "gradient_sets.hpp"

// A backward pass that keeps the core busy: for each gradient a fixed time of arithmetic, then its elements are written. It is
// time that the thread computes: what others take of its core comes on top, how fast the core is at the moment makes no
// difference.
class Backward {
 public:
  Backward(std::span<const GradientSize> gradients, std::span<float> values, double seconds);  // 0: only writes the gradients

  void compute(std::size_t index) const;  // what comes before the gradient is written

  // After each gradient calls on_final(its index).
  void run(const std::function<void(std::size_t)>& on_final) const;

 private:
  std::span<const GradientSize> gradients_;
  std::span<float> values_;
  std::vector<double> seconds_;  // by gradient
};
