#pragma once

#include <cstdint>

// What the operations of ops/elementwise.hpp are told, apart from tensors.
namespace trireme::ops {

enum class Activation : std::uint8_t { gelu_tanh, gelu_erf, relu, silu, sigmoid, tanh };

// log(1 + exp(beta * x)) / beta, and x itself where beta * x is above the threshold.
struct SoftplusOptions {
  double beta = 1;
  double threshold = 20;
};

// Where a random number lies: numbers are a function of (seed, stream, step, index), never of the layout of the ranks.
struct RandomKey {
  std::uint64_t seed = 0;
  std::uint64_t stream = 0;  // a hash of the layer's name
  std::uint64_t step = 0;
  std::uint64_t first_index = 0;  // global index of this tensor's first element
};

}  // namespace trireme::ops
