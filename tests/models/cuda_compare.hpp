#pragma once

#include <cmath>
#include <random>
#include <vector>

#include "catch.hpp"
#include "trireme/nn/base/module.hpp"

// Helpers for the tests of models on a GPU.
namespace trireme::tests {

// Integers in [0, below).
inline Tensor<std::int32_t> random_tokens(const Shape& shape, std::int64_t below, std::mt19937& generator) {
  std::uniform_int_distribution<std::int32_t> token(0, static_cast<std::int32_t>(below) - 1);
  Tensor<std::int32_t> tokens(shape);
  for (std::int32_t& element : tokens.span()) element = token(generator);
  return tokens;
}

template <typename P, typename D>
std::vector<float> gradients(const nn::Module<P, D>& model) {
  const Tensor<float> all = model.store().template gradients<float, D>().template to<Cpu>();
  return {all.data(), all.data() + all.numel()};
}

// The norm of the difference over the norm of the expected values.
template <typename T>
double distance(const std::vector<T>& got, const std::vector<T>& expected) {
  REQUIRE(got.size() == expected.size());
  double difference = 0;
  double norm = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    difference += std::pow(static_cast<double>(got[i]) - static_cast<double>(expected[i]), 2);
    norm += std::pow(static_cast<double>(expected[i]), 2);
  }
  return std::sqrt(difference / norm);
}

}  // namespace trireme::tests
