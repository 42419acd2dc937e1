#pragma once

#include <cmath>
#include <cstdint>
#include <random>
#include <utility>
#include <vector>

#include "catch.hpp"
#include "trireme/core/dtype.hpp"
#include "trireme/tensor/tensor.hpp"

// Helpers for the tests of ops: random inputs, and the comparison with plain loops in double.
namespace trireme::ops {

using Doubles = std::vector<double>;

template <typename T>
Tensor<T> random_tensor(const Shape& shape, std::uint32_t seed, double spread = 1) {
  std::mt19937 generator(seed);
  std::normal_distribution<double> normal(0, spread);
  Tensor<T> tensor(shape);
  for (T& element : tensor.span()) element = static_cast<T>(static_cast<Accumulate<T>>(normal(generator)));
  return tensor;
}

inline Tensor<std::int32_t> random_index(std::int64_t count, std::int64_t below, std::uint32_t seed) {
  std::mt19937 generator(seed);
  std::uniform_int_distribution<std::int32_t> uniform(0, static_cast<std::int32_t>(below) - 1);
  Tensor<std::int32_t> index({count});
  for (std::int32_t& element : index.span()) element = uniform(generator);
  return index;
}

template <typename T>
Doubles as_doubles(const Tensor<T>& tensor) {
  return {tensor.data(), tensor.data() + tensor.numel()};
}

// largest + log(sum) of exponentials[2, ...]; 0 where both are.
template <typename T>
Tensor<T> log_sums(const Tensor<T>& exponentials) {
  const std::int64_t count = exponentials.numel() / 2;
  Tensor<T> result({count});
  for (std::int64_t i = 0; i < count; ++i) {
    const T sum = exponentials.data()[count + i];
    result.data()[i] = sum == T(0) ? T(0) : exponentials.data()[i] + std::log(sum);
  }
  return result;
}

template <typename T>
double tolerance(double float_tolerance) {
  return sizeof(T) == 4 ? float_tolerance : float_tolerance * 1e-8;
}

// |got - expected| <= tolerance * (1 + |expected|), elementwise, or both are the same infinity.
template <typename T>
void require_close(const Tensor<T>& got, const Doubles& expected, double tolerance) {
  REQUIRE(static_cast<std::size_t>(got.numel()) == expected.size());
  const auto close = [&](std::size_t i) {
    const auto value = static_cast<double>(got.span()[i]);
    return value == expected[i] || std::abs(value - expected[i]) <= tolerance * (1 + std::abs(expected[i]));
  };
  std::size_t i = 0;
  while (i < expected.size() && close(i)) ++i;
  const auto [value, wanted] =
      i < expected.size() ? std::pair(static_cast<double>(got.span()[i]), expected[i]) : std::pair(0.0, 0.0);
  INFO("element " << i << " of " << expected.size() << " is " << value << ", not " << wanted << ", tolerance " << tolerance);
  REQUIRE(i == expected.size());  // all are within `tolerance`
}

template <typename T>
void require_identical(const Tensor<T>& a, const Tensor<T>& b) {
  REQUIRE(a.shape() == b.shape());
  REQUIRE(std::equal(a.data(), a.data() + a.numel(), b.data()));
}

inline Doubles add(Doubles a, const Doubles& b) {
  for (std::size_t i = 0; i < a.size(); ++i) a[i] += b[i];
  return a;
}

}  // namespace trireme::ops
