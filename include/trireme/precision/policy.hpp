#pragma once

namespace trireme {

// A precision policy names the element types of a model's planes: what layers compute with, what the optimizer updates,
// what gradients are summed in.
struct Float32 {
  using Compute = float;
  using Master = float;
  using Gradient = float;
};

// For gradient checks by finite differences.
struct Float64 {
  using Compute = double;
  using Master = double;
  using Gradient = double;
};

}  // namespace trireme
