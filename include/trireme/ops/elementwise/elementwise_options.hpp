#pragma once

#include <cstdint>

#include "trireme/core/export.hpp"

// What the operations of ops/elementwise/elementwise.hpp are told, apart from tensors.
namespace trireme TRIREME_EXPORT {
namespace ops {

enum class Activation : std::uint8_t { gelu_tanh, gelu_erf, relu, silu, sigmoid, tanh };

// log(1 + exp(beta * x)) / beta, and x itself where beta * x is above the threshold.
struct SoftplusOptions {
  double beta = 1;
  double threshold = 20;
};

// What changes of a RandomKey from step to step. In a GPU's memory it can be another one at each launch of a graph.
struct RandomPosition {
  std::uint64_t step = 0;
  std::int64_t first_sample = 0;  // of the tensor
};

// Where a random number lies: numbers are a function of (seed, stream, call, step, index), never of the layout of the ranks.
struct RandomKey {
  std::uint64_t seed = 0;
  std::uint64_t stream = 0;  // a hash of the layer's name
  std::uint64_t call = 0;    // number of the stream's calls before in the micro-batch
  std::uint64_t step = 0;
  std::uint64_t first_index = 0;  // global index of this tensor's first element

  // Read on the GPU, unless null: its step counts, and first_index from its sample, each of which has per_sample elements.
  const RandomPosition* on_device = nullptr;
  std::uint64_t per_sample = 0;
};

}  // namespace ops
}  // namespace trireme
