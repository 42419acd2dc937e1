#pragma once

#include "trireme/core/bfloat16.hpp"
#include "trireme/core/export.hpp"
#include "trireme/core/float16.hpp"

namespace trireme TRIREME_EXPORT {

// A precision policy names the element types of a model's planes: Compute for the layers, Master for the weights that the
// optimizer updates, Gradient for the sums of gradients.
struct Float32 {
  using Compute = float;
  using Master = float;
  using Gradient = float;
};

// For gradient checks of layers and functions by finite differences. The library has no models and optimizers of this policy.
struct Float64 {
  using Compute = double;
  using Master = double;
  using Gradient = double;
};

// Mixed precision (Micikevicius et al. 2017, arXiv 1710.03740). Matrix products and the activations between them are in 16
// bits. Weights, their gradients, the residual stream, norms and losses are in float32.
struct MixedBfloat16 {
  using Compute = bfloat16;
  using Master = float;
  using Gradient = float;
};

// Gradients below 6e-8 vanish in float16, so scale the loss (amp/grad_scaler.hpp).
struct MixedFloat16 {
  using Compute = float16;
  using Master = float;
  using Gradient = float;
};

}  // namespace trireme
