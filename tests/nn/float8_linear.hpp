#pragma once

#include <random>

#include "catch.hpp"
#include "trireme/autograd/operations/elementwise.hpp"
#include "trireme/autograd/operations/matmul.hpp"
#include "trireme/autograd/operations/reduce.hpp"
#include "trireme/autograd/record.hpp"
#include "trireme/nn/layers/layers.hpp"

// Helpers for the tests of 8-bit linear layers.
namespace trireme::tests {

// A layer with or without 8-bit products.
template <typename D>
struct Float8Layer : nn::Module<MixedBfloat16, D> {
  explicit Float8Layer(Float8Scaling fp8) : linear(*this, "linear", {.in = 48, .out = 80, .fp8 = fp8, .fp8_amax_history = 3}) {}

  // The amax of the last calls, the newest first.
  Tensor<float> amaxes(const std::string& of) const {
    BufferPlane& buffers = this->store().buffers();
    return buffers.template read_values<float>(buffers.find("linear.fp8_amaxes_of_" + of));
  }

  nn::Linear<MixedBfloat16, D> linear;
};

// A layer's result for random rows, and the gradients of the sum of its squares.
struct LayerResults {
  Tensor<bfloat16> y;
  Tensor<bfloat16> dx;
  Tensor<float> of_parameters;  // [out] of the bias and [out, in] of the weight, in the store's order
};

inline Tensor<bfloat16> random_rows(const Shape& shape, std::uint32_t seed) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> normal;
  Tensor<bfloat16> x(shape);
  for (bfloat16& element : x.span()) element = bfloat16(normal(generator));
  return x;
}

template <typename D>
LayerResults results_of(const Float8Layer<D>& layer, const Tensor<bfloat16>& rows = random_rows({2, 16, 48}, 1)) {
  LayerResults results;
  Tape tape;
  const auto x = watch(rows.template to<D>(), [&](const Tensor<bfloat16, D>& dx) { results.dx = dx.template to<Cpu>(); });
  const auto y = layer.linear.forward(x);
  sum(multiply(y, y)).backward();
  results.y = y.value().template to<Cpu>();
  results.of_parameters = layer.store().template gradients<float, D>().template to<Cpu>();
  return results;
}

// The norm of the difference over the norm of the expected values.
template <typename T>
double distance(const Tensor<T>& got, const Tensor<T>& expected) {
  REQUIRE(got.numel() == expected.numel());
  double difference = 0;
  double norm = 0;
  for (std::int64_t i = 0; i < got.numel(); ++i) {
    const auto value = static_cast<double>(expected.data()[i]);
    difference += (static_cast<double>(got.data()[i]) - value) * (static_cast<double>(got.data()[i]) - value);
    norm += value * value;
  }
  return std::sqrt(difference / norm);
}

}  // namespace trireme::tests
