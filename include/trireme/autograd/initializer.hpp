#pragma once

#include <cstdint>
#include <string_view>

#include "trireme/core/export.hpp"
#include "trireme/core/range.hpp"
#include "trireme/core/shape.hpp"

namespace trireme TRIREME_EXPORT {

// The nonlinearity after a layer, for the gain of its initial weights.
enum class Nonlinearity : std::uint8_t { linear, sigmoid, tanh, relu, leaky_relu, selu };

// The factor on a layer's initial weights that preserves the variance through this nonlinearity, as
// torch.nn.init.calculate_gain. The gains in the order of the enum are 1, 1, 5 / 3, sqrt(2), sqrt(2 / (1 + slope^2)) and 3 / 4.
// slope: leaky_relu's slope for negative inputs.
double calculate_gain(Nonlinearity nonlinearity, double slope = 0.01);

// The fans of a weight [out, in, kernel...]: fan-in is in * kernel elements, fan-out is out * kernel elements, and average is
// their mean.
enum class Fan : std::uint8_t { none, in, out, average };

struct KaimingOptions {
  Fan fan = Fan::in;  // Fan::in preserves the variance of activations, Fan::out that of gradients
  Nonlinearity nonlinearity = Nonlinearity::leaky_relu;
  double slope = 0;  // of leaky_relu
};

// How a parameter is initialized. Values are a function of (seed, name, index), so they are the same with any number of ranks.
// A rank that holds a part of a parameter gets this part of the same whole parameter.
//
//   Linear hidden{*this, "hidden", {.in = 64, .out = 128, .weight_initializer = Initializer::kaiming_normal()}};
//
// Fans are computed from the shape of the whole parameter [out, in, ...]. Initializing a parameter with fewer than 2 dims by
// its fan is an error.
struct Initializer {
  enum class Kind : std::uint8_t { constant, normal, uniform, truncated_normal, orthogonal };
  Kind kind = Kind::constant;
  double a = 0;      // constant: the value; normal: the mean; uniform: the lower bound
  double b = 0;      // normal: the standard deviation; uniform: the upper bound; orthogonal: the gain
  Range zeros = {};  // elements of the whole parameter that stay 0, such as an embedding's padding
  // For normal and uniform. Unless `fan` is none, b is a gain: the standard deviation is gain / sqrt(fan), and the mean is 0.
  Fan fan = Fan::none;
  double lower = 0;  // bounds of truncated_normal
  double upper = 0;

  static Initializer constant(double value) { return {Kind::constant, value, 0, {}}; }
  static Initializer normal(double mean, double deviation) { return {Kind::normal, mean, deviation, {}}; }
  static Initializer uniform(double lower, double upper) { return {Kind::uniform, lower, upper, {}}; }

  // Normal numbers restricted to [lower, upper]; `deviation` is the standard deviation before the restriction.
  static Initializer truncated_normal(double mean = 0, double deviation = 1, double lower = -2, double upper = 2) {
    return {Kind::truncated_normal, mean, deviation, {}, Fan::none, lower, upper};
  }

  // Variance gain^2 / average fan (Glorot, Bengio 2010).
  static Initializer xavier_uniform(double gain = 1) { return {Kind::uniform, 0, gain, {}, Fan::average}; }
  static Initializer xavier_normal(double gain = 1) { return {Kind::normal, 0, gain, {}, Fan::average}; }

  // Variance gain^2 / fan, with the gain of the nonlinearity (He et al. 2015, arXiv 1502.01852).
  static Initializer kaiming_uniform(const KaimingOptions& options = {}) {
    return {Kind::uniform, 0, calculate_gain(options.nonlinearity, options.slope), {}, options.fan};
  }
  static Initializer kaiming_normal(const KaimingOptions& options = {}) {
    return {Kind::normal, 0, calculate_gain(options.nonlinearity, options.slope), {}, options.fan};
  }

  // gain times a matrix [out, in * kernel] with orthonormal rows, or with orthonormal columns if the matrix has more rows than
  // columns (Saxe et al. 2013, arXiv 1312.6120). The matrix is Q of the QR decomposition of normal numbers, with a positive
  // diagonal of R. Every rank computes the whole matrix in double, which takes about 8/3 * larger * smaller^2 operations, with
  // the larger and the smaller of the two dims.
  static Initializer orthogonal(double gain = 1) { return {Kind::orthogonal, 0, gain, {}}; }

  // Returns the same initializer for a parameter of this whole shape: the standard deviation or the bounds replace the fan.
  Initializer of_shape(const Shape& whole, std::string_view name) const;
};

}  // namespace trireme
