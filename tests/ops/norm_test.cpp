#include "trireme/ops/norm/norm.hpp"

#include "ops/compare.hpp"
#include "ops/threads.hpp"

using namespace trireme;
using namespace trireme::ops;

namespace {

struct Expected {
  Doubles y, mean, rstd, dx, dweight, dbias;
};

Expected naive(const Doubles& x, const Doubles& weight, const Doubles& bias, const Doubles& dy, double epsilon) {
  const std::size_t width = weight.size();
  const auto n = static_cast<double>(width);
  Expected result;
  result.dweight.assign(width, 0);
  result.dbias.assign(width, 0);
  for (std::size_t row = 0; row < x.size() / width; ++row) {
    const double* at = x.data() + row * width;
    const double* dat = dy.data() + row * width;
    double mean = 0;
    for (std::size_t j = 0; j < width; ++j) mean += at[j] / n;
    double variance = 0;
    for (std::size_t j = 0; j < width; ++j) variance += (at[j] - mean) * (at[j] - mean) / n;
    const double rstd = 1 / std::sqrt(variance + epsilon);
    result.mean.push_back(mean);
    result.rstd.push_back(rstd);
    double mean_g = 0;
    double mean_gx = 0;
    for (std::size_t j = 0; j < width; ++j) {
      const double normed = (at[j] - mean) * rstd;
      result.y.push_back(normed * weight[j] + bias[j]);
      result.dweight[j] += dat[j] * normed;
      result.dbias[j] += dat[j];
      mean_g += dat[j] * weight[j] / n;
      mean_gx += dat[j] * weight[j] * normed / n;
    }
    for (std::size_t j = 0; j < width; ++j) {
      result.dx.push_back(rstd * (dat[j] * weight[j] - mean_g - (at[j] - mean) * rstd * mean_gx));
    }
  }
  return result;
}

}  // namespace

TEMPLATE_TEST_CASE("layer norm forward and backward", "", float, double) {
  using T = TestType;
  for (const std::int64_t width : {1, 7, 32, 100, 384}) {
    CAPTURE(width);
    const Shape shape{3, 47, width};
    const auto x = random_tensor<T>(shape, 1, 2);
    const auto weight = random_tensor<T>({width}, 2);
    const auto bias = random_tensor<T>({width}, 3);
    const auto dy = random_tensor<T>(shape, 4);
    const auto expected = naive(as_doubles(x), as_doubles(weight), as_doubles(bias), as_doubles(dy), 1e-5);
    // A row of one element has no variance: its rstd, 316, multiplies every rounding error.
    const double tight = tolerance<T>(width == 1 ? 1e-3 : 1e-5);

    Tensor<T> y(shape);
    Tensor<T> mean({3, 47});
    Tensor<T> rstd({3, 47});
    layer_norm<T, Cpu>({.x = x, .weight = weight, .bias = bias, .y = y, .mean = mean, .rstd = rstd});
    require_close(y, expected.y, tight);
    require_close(mean, expected.mean, tight);
    require_close(rstd, expected.rstd, tight);

    const auto old = random_tensor<T>(shape, 5);
    const auto old_row = random_tensor<T>({width}, 6);
    for (const bool accumulate : {false, true}) {
      const auto dx = old.clone();
      const auto dweight = old_row.clone();
      const auto dbias = old_row.clone();
      layer_norm_backward<T, Cpu>({.x = x,
                                   .weight = weight,
                                   .mean = mean,
                                   .rstd = rstd,
                                   .dy = dy,
                                   .dx = dx,
                                   .accumulate_dx = accumulate,
                                   .dweight = dweight,
                                   .accumulate_dweight = accumulate,
                                   .dbias = dbias,
                                   .accumulate_dbias = accumulate});
      const auto plus = [&](const Tensor<T>& before, const Doubles& change) {
        return accumulate ? add(as_doubles(before), change) : change;
      };
      require_close(dx, plus(old, expected.dx), 5 * tight);
      require_close(dweight, plus(old_row, expected.dweight), 5 * tight);
      require_close(dbias, plus(old_row, expected.dbias), 5 * tight);
    }
  }
}

TEMPLATE_TEST_CASE("layer norm without weight and bias, with a residual", "", float, double) {
  using T = TestType;
  const Shape shape{9, 50};
  const auto x = random_tensor<T>(shape, 1);
  const auto residual = random_tensor<T>(shape, 2);
  const auto dy = random_tensor<T>(shape, 3);
  const Doubles sum = add(as_doubles(x), as_doubles(residual));
  const auto expected = naive(sum, Doubles(50, 1), Doubles(50, 0), as_doubles(dy), 1e-3);
  Tensor<T> x_sum(shape);
  Tensor<T> y(shape);
  Tensor<T> mean({9});
  Tensor<T> rstd({9});
  layer_norm<T, Cpu>({.x = x, .residual = residual, .epsilon = 1e-3, .x_sum = x_sum, .y = y, .mean = mean, .rstd = rstd});
  require_close(x_sum, sum, tolerance<T>(1e-6));
  require_close(y, expected.y, tolerance<T>(1e-5));
  Tensor<T> dx(shape);
  layer_norm_backward<T, Cpu>({.x = x_sum, .mean = mean, .rstd = rstd, .dy = dy, .dx = dx});
  require_close(dx, expected.dx, tolerance<T>(1e-5));
}

TEST_CASE("layer norm gives the same bits for any number of threads") {
  const Shape shape{2048, 96};
  const auto x = random_tensor<float>(shape, 1);
  const auto weight = random_tensor<float>({96}, 2);
  const auto dy = random_tensor<float>(shape, 4);
  const auto run = [&](int threads) {
    Tensor<float> y(shape), mean({2048}), rstd({2048}), dx(shape), dweight({96}), dbias({96});
    with_threads(threads, [&] {
      layer_norm<float, Cpu>({.x = x, .weight = weight, .y = y, .mean = mean, .rstd = rstd});
      layer_norm_backward<float, Cpu>(
          {.x = x, .weight = weight, .mean = mean, .rstd = rstd, .dy = dy, .dx = dx, .dweight = dweight, .dbias = dbias});
    });
    return std::vector{y, dx, dweight, dbias};
  };
  const auto one = run(1);
  const auto three = run(3);
  for (std::size_t i = 0; i < one.size(); ++i) require_identical(one[i], three[i]);
}

TEST_CASE("norms name the tensor that does not fit") {
  const Tensor<float> x({2, 3});
  CHECK_THROWS_WITH((rms_norm<float, Cpu>({.x = x, .bias = Tensor<float>({3}), .y = x.clone(), .rstd = Tensor<float>({2})})),
                    "rms_norm: adds no bias, but one of shape [3] is given");
  CHECK_THROWS_WITH((layer_norm<float, Cpu>({.x = x, .y = x.clone(), .mean = Tensor<float>({3}), .rstd = Tensor<float>({2})})),
                    "layer_norm: mean has shape [3], but needs 2 elements");
}
