#include "trireme/autograd/initializer.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "catch.hpp"
#include "trireme/autograd/flat_store.hpp"

using namespace trireme;

namespace {

std::vector<double> values_of(const Initializer& initializer, const Shape& shape, std::uint64_t seed = 3) {
  FlatStore store(DType::float64);
  store.add("layer.weight", shape, initializer);
  store.initialize<double>(seed);
  const Tensor<double> values = store.read_values<double>(0);
  return {values.span().begin(), values.span().end()};
}

struct Moments {
  double mean = 0;
  double deviation = 0;
  double least = 0;
  double largest = 0;
};
Moments moments(const std::vector<double>& values) {
  const auto count = static_cast<double>(values.size());
  Moments result;
  for (const double value : values) result.mean += value / count;
  for (const double value : values) result.deviation += (value - result.mean) * (value - result.mean) / count;
  result.deviation = std::sqrt(result.deviation);
  result.least = *std::ranges::min_element(values);
  result.largest = *std::ranges::max_element(values);
  return result;
}

void check_normal(const Initializer& initializer, const Shape& shape, double deviation) {
  const Moments found = moments(values_of(initializer, shape));
  CHECK(std::abs(found.mean) < 0.03 * deviation);
  CHECK(found.deviation == Approx(deviation).epsilon(0.02));
  CHECK(found.largest > 3 * deviation);
}
void check_uniform(const Initializer& initializer, const Shape& shape, double bound) {
  const Moments found = moments(values_of(initializer, shape));
  CHECK(found.deviation == Approx(bound / std::sqrt(3)).epsilon(0.02));
  CHECK(found.least >= -bound);
  CHECK(found.largest <= bound);
  CHECK(found.least < -0.99 * bound);
  CHECK(found.largest > 0.99 * bound);
}

void check_orthonormal(const Shape& shape, double gain) {
  CAPTURE(shape.str());
  const auto w = values_of(Initializer::orthogonal(gain), shape);
  const std::int64_t rows = shape[0], width = shape.numel() / rows;
  const bool wide = rows <= width;
  const std::int64_t vectors = wide ? rows : width, length = wide ? width : rows;
  const auto at = [&](std::int64_t vector, std::int64_t i) {
    return w[static_cast<std::size_t>(wide ? vector * width + i : i * width + vector)];
  };
  double error = 0;
  for (std::int64_t a = 0; a < vectors; ++a) {
    for (std::int64_t b = 0; b < vectors; ++b) {
      double dot = 0;
      for (std::int64_t i = 0; i < length; ++i) dot += at(a, i) * at(b, i);
      error = std::max(error, std::abs(dot - (a == b ? gain * gain : 0)));
    }
  }
  CHECK(error < 1e-12);
}

}  // namespace

TEST_CASE("gains are those of torch.nn.init.calculate_gain") {
  CHECK(calculate_gain(Nonlinearity::linear) == 1);
  CHECK(calculate_gain(Nonlinearity::sigmoid) == 1);
  CHECK(calculate_gain(Nonlinearity::tanh) == Approx(1.6666666666666667));
  CHECK(calculate_gain(Nonlinearity::relu) == Approx(1.4142135623730951));
  CHECK(calculate_gain(Nonlinearity::leaky_relu) == Approx(1.4141428569978354));
  CHECK(calculate_gain(Nonlinearity::leaky_relu, 0.2) == Approx(1.3867504905630728));
  CHECK(calculate_gain(Nonlinearity::selu) == 0.75);
}

TEST_CASE("deviations and bounds follow from the fans of the whole parameter") {
  const Shape weight{80, 120};
  check_normal(Initializer::xavier_normal(), weight, std::sqrt(2.0 / 200));
  check_uniform(Initializer::xavier_uniform(2), weight, 2 * std::sqrt(6.0 / 200));
  check_normal(Initializer::kaiming_normal(), weight, std::sqrt(2.0 / 120));
  check_normal(Initializer::kaiming_normal({.fan = Fan::out, .nonlinearity = Nonlinearity::tanh}), weight,
               5.0 / 3 / std::sqrt(80));
  check_uniform(Initializer::kaiming_uniform({.slope = std::sqrt(5.0)}), weight, 1 / std::sqrt(120));  // torch.nn.Linear
  const Shape kernel{16, 24, 5, 5};
  check_normal(Initializer::kaiming_normal({.nonlinearity = Nonlinearity::relu}), kernel, std::sqrt(2.0 / (24 * 25)));
  check_uniform(Initializer::kaiming_uniform({.fan = Fan::out}), kernel, std::sqrt(6.0 / (16 * 25)));
  CHECK_THROWS_WITH(values_of(Initializer::xavier_normal(), {8}),
                    "layer.weight: a fan needs a weight [out, in, ...], this one has shape [8]: give a normal or uniform");
  CHECK(values_of(Initializer::kaiming_normal(), {0, 4}).empty());
}

TEST_CASE("a truncated normal keeps its bounds and its shape within them") {
  const auto found = moments(values_of(Initializer::truncated_normal(), {100, 100}));
  CHECK(std::abs(found.mean) < 0.03);
  CHECK(found.deviation == Approx(0.8796256610342398).epsilon(0.02));  // scipy.stats.truncnorm(-2, 2).std()
  CHECK(found.least > -2);
  CHECK(found.largest < 2);
  CHECK(found.largest > 1.95);
  // Far from the mean, on both sides: scipy.stats.truncnorm(5, 7, loc=1, scale=0.5).mean() is 3.59325...
  const auto above = moments(values_of(Initializer::truncated_normal(1, 0.5, 3.5, 4.5), {100, 100}));
  CHECK(above.least >= 3.5);
  CHECK(above.mean == Approx(3.5932514795).epsilon(0.002));
  const auto below = moments(values_of(Initializer::truncated_normal(-1, 0.5, -4.5, -3.5), {100, 100}));
  CHECK(below.largest <= -3.5);
  CHECK(below.mean == Approx(-3.5932514795).epsilon(0.002));
  CHECK(values_of(Initializer::truncated_normal(3, 0, -2, 2), {2}) == std::vector<double>{2, 2});
  CHECK_THROWS_WITH(values_of(Initializer::truncated_normal(0, 1, 2, -2), {2}),
                    "layer.weight: nothing of a normal distribution of mean 0 and standard deviation 1 lies in [2, -2]");
  CHECK_THROWS_WITH(values_of(Initializer::truncated_normal(0, 1, 80, 90), {2}),
                    "layer.weight: nothing of a normal distribution of mean 0 and standard deviation 1 lies in [80, 90]");
}

TEST_CASE("orthogonal matrices, of more rows and of more columns") {
  for (const Shape& shape :
       {Shape{1, 1}, Shape{7, 7}, Shape{40, 9}, Shape{9, 40}, Shape{6, 2, 3, 3}, Shape{1, 5}, Shape{5, 1}}) {
    check_orthonormal(shape, 1);
  }
  check_orthonormal({12, 12}, 1.5);
  CHECK(values_of(Initializer::orthogonal(), {0, 3}).empty());
  CHECK(values_of(Initializer::orthogonal(), {3, 0}).empty());
  CHECK_THROWS_WITH(values_of(Initializer::orthogonal(), {3}),
                    "layer.weight: an orthogonal matrix has 2 dims or more, this one has shape [3]");
}

TEST_CASE("a part of a parameter has the values of that part of the whole") {
  for (const auto& initializer : {Initializer::orthogonal(), Initializer::xavier_uniform(), Initializer::kaiming_normal(),
                                  Initializer::truncated_normal(0, 0.02)}) {
    const Shape whole{6, 10};
    const auto all = values_of(initializer, whole);
    CHECK(all == values_of(initializer, whole));
    CHECK(all != values_of(initializer, whole, 4));
    for (const int dim : {0, 1}) {
      FlatStore store(DType::float64);
      store.add("layer.weight", Placement{.shape = whole, .dim = dim, .ranges = {{1, 2}, {3, 6}}}, initializer);
      store.initialize<double>(3);
      const auto part = store.read_values<double>(0);
      for (std::int64_t row = 0; row < part.dim(0); ++row) {
        for (std::int64_t column = 0; column < part.dim(1); ++column) {
          const auto there = [](std::int64_t here) { return here == 0 ? 1 : here + 2; };
          const std::int64_t place = dim == 0 ? there(row) * 10 + column : row * 10 + there(column);
          CHECK(part.at(row, column) == all[static_cast<std::size_t>(place)]);
        }
      }
    }
  }
}

TEST_CASE("a store that was not initialized is found out for every kind of initial values") {
  for (const auto& initializer : {Initializer::orthogonal(), Initializer::xavier_uniform(), Initializer::truncated_normal()}) {
    FlatStore store(DType::float32);
    store.add("layer.weight", {2, 2}, initializer);
    CHECK_THROWS_AS(store.require_values(), Error);
    store.initialize<float>(1);
    store.require_values();
  }
}
