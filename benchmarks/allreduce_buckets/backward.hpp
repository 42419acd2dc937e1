#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "gradient_sets.hpp"

// A backward pass that keeps the core busy: for each gradient a fixed amount of arithmetic, then its elements are written.
class Backward {
 public:
  // Calibrated on this machine as it is now, so that all of it takes about `seconds`; 0: only writes the gradients.
  Backward(std::span<const GradientSize> gradients, std::span<float> values, double seconds);

  void compute(std::size_t index) const;  // what comes before the gradient is written

  // After each gradient calls on_final(its index).
  void run(const std::function<void(std::size_t)>& on_final) const;

 private:
  std::span<const GradientSize> gradients_;
  std::span<float> values_;
  std::vector<std::int64_t> iterations_;  // by gradient
};
