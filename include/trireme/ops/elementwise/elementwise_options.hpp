#pragma once

#include <cstdint>

#include "trireme/core/export.hpp"

// Options of the operations in ops/elementwise/elementwise.hpp.
namespace trireme TRIREME_EXPORT {
namespace ops {

enum class Activation : std::uint8_t { gelu_tanh, gelu_erf, relu, silu, sigmoid, tanh };

// log(1 + exp(beta * x)) / beta; if beta * x is above the threshold, x itself.
struct SoftplusOptions {
  double beta = 1;
  double threshold = 20;
};

// The part of a RandomKey that changes from step to step. In a GPU's memory it can change between launches of a graph.
struct RandomPosition {
  std::uint64_t step = 0;
  std::int64_t first_sample = 0;  // number of the tensor's first sample
};

// Identifies random numbers. Each number is a function of (seed, stream, call, step, index), independent of the layout of the
// ranks.
struct RandomKey {
  std::uint64_t seed = 0;
  std::uint64_t stream = 0;  // a hash of the layer's name
  std::uint64_t call = 0;    // number of earlier calls of the stream in the micro-batch
  std::uint64_t step = 0;
  std::uint64_t first_index = 0;  // global index of this tensor's first element

  // If not null, the GPU uses on_device->step instead of `step`, which is then 0, and adds on_device->first_sample * per_sample
  // to first_index.
  const RandomPosition* on_device = nullptr;
  std::uint64_t per_sample = 0;
};

}  // namespace ops
}  // namespace trireme
