#include "autograd/initial_values.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numbers>

#include "trireme/core/error.hpp"
#include "trireme/core/philox.hpp"

namespace trireme {
namespace {

// The standard normal distribution function, and its inverse for p in (0, 1).
double normal_share(double x) { return 0.5 * std::erfc(-x / std::numbers::sqrt2); }
double normal_quantile(double p) {
  if (p > 0.5) return -normal_quantile(1 - p);
  // Hastings 1955, with an error up to 4.5e-4; then two Halley steps, each of which cubes the error.
  const double t = std::sqrt(-2 * std::log(p));
  double x = (2.515517 + t * (0.802853 + t * 0.010328)) / (1 + t * (1.432788 + t * (0.189269 + t * 0.001308))) - t;
  for (int step = 0; step < 2; ++step) {
    const double ratio = (normal_share(x) - p) * std::sqrt(2 * std::numbers::pi) * std::exp(x * x / 2);
    x -= ratio / (1 + x * ratio / 2);
  }
  return x;
}

// columns: columns of `rows` elements, one after the other, no more than `rows`. Replaces them by the Q of their QR
// decomposition in which R has a positive diagonal, by Householder reflections. One thread computes each column, so the bits do
// not depend on the number of threads.
void orthonormalize(std::vector<double>& columns, std::int64_t rows) {
  const std::int64_t count = static_cast<std::int64_t>(columns.size()) / rows;
  const auto column = [&](std::vector<double>& of, std::int64_t index) { return of.data() + index * rows; };
  const auto dot = [rows](const double* x, const double* y, std::int64_t first) {
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (std::int64_t i = first; i < rows; ++i) sum += x[i] * y[i];
    return sum;
  };
  // Multiplies columns [from, count) by 1 - 2 v v^T / |v|^2; v starts at row `first`.
  const auto reflect = [&](const double* v, std::int64_t first, std::vector<double>& of, std::int64_t from) {
    const double square = dot(v, v, first);
    if (square == 0) return;
#pragma omp parallel for schedule(static) if ((rows - first) * (count - from) >= (1 << 15))
    for (std::int64_t index = from; index < count; ++index) {
      double* y = column(of, index);
      const double factor = 2 * dot(v, y, first) / square;
#pragma omp simd
      for (std::int64_t i = first; i < rows; ++i) y[i] -= factor * v[i];
    }
  };
  std::vector<double> signs(static_cast<std::size_t>(count), 1);
  for (std::int64_t k = 0; k < count; ++k) {
    double* v = column(columns, k);
    const double length = std::sqrt(dot(v, v, k));
    const double diagonal = v[k] > 0 ? -length : length;
    v[k] -= diagonal;
    if (diagonal < 0) signs[static_cast<std::size_t>(k)] = -1;
    reflect(v, k, columns, k + 1);
  }
  std::vector<double> q(columns.size(), 0);
  for (std::int64_t k = 0; k < count; ++k) column(q, k)[k] = signs[static_cast<std::size_t>(k)];
  for (std::int64_t k = count - 1; k >= 0; --k) reflect(column(columns, k), k, q, k);
  columns = std::move(q);
}

// gain times a matrix [rows, width] with orthonormal rows, or orthonormal columns if rows >= width.
std::vector<double> orthogonal_matrix(std::int64_t rows, std::int64_t width, double gain, std::uint64_t seed,
                                      std::uint64_t stream) {
  const bool wide = rows < width;  // then the rows are made orthonormal
  const std::int64_t length = std::max(rows, width);
  const auto place = [&](std::int64_t row, std::int64_t at) {
    return static_cast<std::size_t>(wide ? row * length + at : at * length + row);
  };
  std::vector<double> vectors(static_cast<std::size_t>(rows * width));
#pragma omp parallel for schedule(static) if (rows * width >= (1 << 13))
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t at = 0; at < width; ++at) {
      vectors[place(row, at)] = philox_normal(seed, stream, static_cast<std::uint64_t>(row * width + at));
    }
  }
  if (!vectors.empty()) orthonormalize(vectors, length);
  std::vector<double> matrix(vectors.size());
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t at = 0; at < width; ++at) {
      matrix[static_cast<std::size_t>(row * width + at)] = gain * vectors[place(row, at)];
    }
  }
  return matrix;
}

}  // namespace

double calculate_gain(Nonlinearity nonlinearity, double slope) {
  switch (nonlinearity) {
    case Nonlinearity::linear:
    case Nonlinearity::sigmoid: return 1;
    case Nonlinearity::tanh: return 5.0 / 3;
    case Nonlinearity::relu: return std::numbers::sqrt2;
    case Nonlinearity::leaky_relu: return std::sqrt(2 / (1 + slope * slope));
    case Nonlinearity::selu: return 0.75;
  }
  return 1;
}

Initializer Initializer::of_shape(const Shape& whole, std::string_view name) const {
  Initializer result = *this;
  result.fan = Fan::none;
  if (fan == Fan::none || whole.numel() == 0) return result;
  require(whole.size() >= 2, "{}: a fan needs a weight [out, in, ...], this one has shape {}: give a normal or uniform", name,
          whole);
  const std::int64_t in = whole.numel() / whole[0];
  const std::int64_t out = whole.numel() / whole[1];
  const auto of = fan == Fan::in    ? static_cast<double>(in)
                  : fan == Fan::out ? static_cast<double>(out)
                                    : static_cast<double>(in + out) / 2;
  const double deviation = b / std::sqrt(of);
  if (kind == Kind::uniform) {
    result.b = std::numbers::sqrt3 * deviation;
    result.a = -result.b;
  } else {
    result.b = deviation;
  }
  return result;
}

InitialValues::InitialValues(const Initializer& initializer, const Shape& whole, std::string_view name, std::uint64_t seed)
    : initializer_(initializer.of_shape(whole, name)), seed_(seed), stream_(hash_name(name)) {
  if (initializer_.kind == Initializer::Kind::orthogonal) {
    require(whole.size() >= 2, "{}: an orthogonal matrix has 2 dims or more, this one has shape {}", name, whole);
    const std::int64_t width = whole[0] == 0 ? 0 : whole.numel() / whole[0];
    matrix_ = orthogonal_matrix(whole[0], width, initializer_.b, seed, stream_);
  }
  if (initializer_.kind == Initializer::Kind::truncated_normal && initializer_.b != 0) {
    const auto [kind, mean, deviation, zeros, fan, lower, upper] = initializer_;
    sign_ = lower > mean ? -1 : 1;
    const double first = (sign_ > 0 ? lower - mean : mean - upper) / deviation;
    const double last = (sign_ > 0 ? upper - mean : mean - lower) / deviation;
    below_ = normal_share(first);
    within_ = normal_share(last) - below_;
    require(lower < upper && deviation > 0 && within_ > 0,
            "{}: nothing of a normal distribution of mean {} and standard deviation {} lies in [{}, {}]", name, mean, deviation,
            lower, upper);
  }
}

double InitialValues::operator()(std::int64_t element) const {
  const Range& zeros = initializer_.zeros;
  if (element >= zeros.begin && element < zeros.end) return 0;
  return drawn(static_cast<std::uint64_t>(element));
}

double InitialValues::drawn(std::uint64_t element) const {
  const auto& of = initializer_;
  switch (of.kind) {
    case Initializer::Kind::constant: return of.a;
    case Initializer::Kind::normal: return of.a + of.b * philox_normal(seed_, stream_, element);
    case Initializer::Kind::uniform: return of.a + (of.b - of.a) * philox_uniform(seed_, stream_, element);
    case Initializer::Kind::orthogonal: return matrix_[static_cast<std::size_t>(element)];
    case Initializer::Kind::truncated_normal: break;
  }
  if (of.b == 0) return std::clamp(of.a, of.lower, of.upper);
  const double share = below_ + philox_uniform(seed_, stream_, element) * within_;
  return std::clamp(of.a + sign_ * of.b * normal_quantile(share), of.lower, of.upper);
}

}  // namespace trireme
