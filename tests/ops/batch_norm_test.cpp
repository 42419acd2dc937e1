#include "trireme/ops/norm/batch_norm.hpp"

#include "ops/compare.hpp"
#include "ops/threads.hpp"
#include "trireme/core/bfloat16.hpp"
#include "trireme/core/float16.hpp"
#include "trireme/ops/elementwise/cast.hpp"
#include "trireme/ops/norm/group_norm.hpp"

using namespace trireme;
using namespace trireme::ops;

namespace {

struct Statistics {
  Tensor<double> mean, rstd;
};

// From sums over `rows` rows.
Statistics statistics_of(const Tensor<double>& sums, double rows, double epsilon) {
  const Shape channels{sums.numel() / 2};
  const Statistics result{Tensor<double>(channels), Tensor<double>(channels)};
  batch_norm_statistics<float, Cpu>({.sums = sums, .rows = rows, .epsilon = epsilon, .mean = result.mean, .rstd = result.rstd});
  return result;
}

template <typename T>
Tensor<double> sums_of(const Tensor<T>& x) {
  Tensor<double> sums({2 * x.shape().back()});
  batch_norm_sums(x, sums);
  return sums;
}

template <typename T>
Tensor<double> sums_of(const BatchNormBackward<T, Cpu>& pass, const Tensor<T>& dresidual = {}) {
  Tensor<double> sums({2 * pass.x.shape().back()});
  batch_norm_backward_sums(pass, sums, dresidual);
  return sums;
}

struct Expected {
  Doubles mean, rstd, y, dresidual, dx, sums;
};

// relu(batch_norm(x) + residual), the mean first and then the squares of the differences.
Expected naive(const Doubles& x, const Doubles& residual, const Doubles& weight, const Doubles& bias, const Doubles& dy,
               bool relu, double epsilon) {
  const std::size_t channels = weight.size();
  const std::size_t rows = x.size() / channels;
  const auto n = static_cast<double>(rows);
  Expected result{Doubles(channels), Doubles(channels), Doubles(x.size()), dy, Doubles(x.size()), Doubles(2 * channels)};
  for (std::size_t c = 0; c < channels; ++c) {
    double mean = 0, variance = 0;
    for (std::size_t i = c; i < x.size(); i += channels) mean += x[i] / n;
    for (std::size_t i = c; i < x.size(); i += channels) variance += (x[i] - mean) * (x[i] - mean) / n;
    const double rstd = 1 / std::sqrt(variance + epsilon);
    result.mean[c] = mean;
    result.rstd[c] = rstd;
    double sum = 0, product = 0;
    for (std::size_t i = c; i < x.size(); i += channels) {
      result.y[i] = (x[i] - mean) * rstd * weight[c] + bias[c] + residual[i];
      if (relu && result.y[i] <= 0) result.y[i] = result.dresidual[i] = 0;
      sum += result.dresidual[i];
      product += result.dresidual[i] * (x[i] - mean) * rstd;
    }
    result.sums[c] = sum;
    result.sums[channels + c] = product;
    for (std::size_t i = c; i < x.size(); i += channels) {
      result.dx[i] = rstd * weight[c] * (result.dresidual[i] - sum / n - (x[i] - mean) * rstd * product / n);
    }
  }
  return result;
}

}  // namespace

TEMPLATE_TEST_CASE("batch norm forward and backward, with and without residual and ReLU", "", float, double) {
  using T = TestType;
  for (const std::int64_t channels : {1, 3, 16, 37, 64, 100, 130}) {
    for (const auto& [relu, adds] : {std::pair(false, false), {false, true}, {true, false}, {true, true}}) {
      CAPTURE(channels, relu, adds);
      const Shape shape{3, 7, 11, channels};
      const double rows = 3 * 7 * 11;
      const auto x = random_tensor<T>(shape, 1, 2);
      const auto residual = adds ? random_tensor<T>(shape, 7) : Tensor<T>();
      const auto weight = random_tensor<T>({channels}, 2);
      const auto bias = random_tensor<T>({channels}, 3);
      const auto dy = random_tensor<T>(shape, 4);
      const auto none = Doubles(static_cast<std::size_t>(x.numel()), 0);
      const auto expected = naive(as_doubles(x), adds ? as_doubles(residual) : none, as_doubles(weight), as_doubles(bias),
                                  as_doubles(dy), relu, 1e-5);
      const auto [mean, rstd] = statistics_of(sums_of(x), rows, 1e-5);
      require_close(mean, expected.mean, 1e-12);
      require_close(rstd, expected.rstd, 1e-12);
      Tensor<T> y(shape);
      batch_norm<T, Cpu>(
          {.x = x, .mean = mean, .rstd = rstd, .weight = weight, .bias = bias, .residual = residual, .relu = relu, .y = y});
      require_close(y, expected.y, tolerance<T>(1e-5));

      // The gradient of the ReLU: by the result y; without y, by x, where there is no residual; without ReLU, given as
      // dresidual.
      BatchNormBackward<T, Cpu> pass{
          .x = x, .mean = mean, .rstd = rstd, .weight = weight, .bias = bias, .relu = relu, .y = y, .dy = dy};
      const auto dresidual = Tensor<T>::full(shape, 5);
      const auto sums = sums_of(pass, dresidual);
      require_close(dresidual, expected.dresidual, 0);
      const auto check = [&] {
        require_close(sums_of(pass), expected.sums, tolerance<T>(1e-5));
        const auto old = random_tensor<T>(shape, 5);
        for (const bool accumulate : {false, true}) {
          auto dx = old.clone();
          batch_norm_backward(pass, sums, rows, dx, accumulate);
          require_close(dx, accumulate ? add(as_doubles(old), expected.dx) : expected.dx, tolerance<T>(5e-5));
        }
      };
      check();
      if (!adds) {
        pass.y = {};
        const auto by_x = Tensor<T>::full(shape, 5);
        sums_of(pass, by_x);
        require_close(by_x, expected.dresidual, 0);
        check();
      }
      pass.relu = false;
      pass.dy = dresidual;
      check();
    }
  }
}

TEST_CASE("batch norm without weight and bias; by statistics that do not depend on x") {
  const Shape shape{50, 5};
  const auto x = random_tensor<float>(shape, 1);
  const auto dy = random_tensor<float>(shape, 2);
  const auto [mean, rstd] = statistics_of(sums_of(x), 50, 1e-3);
  const auto expected = naive(as_doubles(x), Doubles(250, 0), Doubles(5, 1), Doubles(5, 0), as_doubles(dy), false, 1e-3);
  Tensor<float> y(shape), dx(shape);
  batch_norm<float, Cpu>({.x = x, .mean = mean, .rstd = rstd, .y = y});
  require_close(y, expected.y, 1e-5);
  batch_norm_backward<float, Cpu>({.x = x, .mean = mean, .rstd = rstd, .dy = dy}, {}, 0, dx, false);
  Doubles scaled = as_doubles(dy);
  for (std::size_t i = 0; i < scaled.size(); ++i) scaled[i] *= expected.rstd[i % 5];
  require_close(dx, scaled, 1e-6);
}

TEST_CASE("running statistics are followed and used; a batch that is not finite leaves them alone") {
  const auto sums = Tensor<double>::from({4}, Doubles{16, 0, 84, 0});  // of 1, 3, 5, 7 and of zeros
  const Tensor<float> mean = Tensor<float>::zeros({2}), var = Tensor<float>::full({2}, 1);
  BatchNormStatistics<float, Cpu> pass{.sums = sums,
                                       .rows = 4,
                                       .momentum = 0.25,
                                       .running_mean = mean,
                                       .running_var = var,
                                       .mean = Tensor<double>({2}),
                                       .rstd = Tensor<double>({2})};
  batch_norm_statistics(pass);
  require_close(pass.mean, {4, 0}, 0);
  require_close(pass.rstd, {1 / std::sqrt(5 + 1e-5), 1 / std::sqrt(1e-5)}, 1e-15);
  const Doubles followed{1, 0}, followed_var{0.75 + 0.25 * 20 / 3, 0.75};
  require_close(mean, followed, 1e-7);
  require_close(var, followed_var, 1e-7);
  Tensor<double> used({2}), used_rstd({2});
  batch_norm_running_statistics(mean, var, 0.5, used, used_rstd);
  require_close(used, followed, 1e-7);
  require_close(used_rstd, {1 / std::sqrt(followed_var[0] + 0.5), 1 / std::sqrt(1.25)}, 1e-7);
  pass.sums = Tensor<double>::from({4}, Doubles{16, 0, 1e80, 0});
  batch_norm_statistics(pass);
  require_close(mean, followed, 1e-7);
  require_close(var, followed_var, 1e-7);
  pass.rows = 1;
  CHECK_THROWS_WITH(batch_norm_statistics(pass), "batch_norm_statistics: a variance needs more than one row, there are 1");
}

TEST_CASE("batch norm of floats far from zero") {
  const Shape shape{4096, 6};
  auto x = random_tensor<float>(shape, 1);
  for (float& element : x.span()) element += 1e4f;
  const auto dy = random_tensor<float>(shape, 2);
  const auto expected = naive(as_doubles(x), Doubles(4096 * 6, 0), Doubles(6, 1), Doubles(6, 0), as_doubles(dy), false, 1e-5);
  const auto [mean, rstd] = statistics_of(sums_of(x), 4096, 1e-5);
  require_close(rstd, expected.rstd, 1e-7);
  Tensor<float> y(shape), dx(shape);
  batch_norm<float, Cpu>({.x = x, .mean = mean, .rstd = rstd, .y = y});
  require_close(y, expected.y, 1e-6);
  const BatchNormBackward<float, Cpu> pass{.x = x, .mean = mean, .rstd = rstd, .dy = dy};
  const auto sums = sums_of(pass);
  require_close(sums, expected.sums, 1e-5);
  batch_norm_backward(pass, sums, 4096, dx, false);
  require_close(dx, expected.dx, 1e-6);
}

TEST_CASE("sums of parts of the rows add up to those of all rows; no rows add nothing") {
  const auto x = random_tensor<double>({300, 7}, 1);
  const auto part = [&](std::int64_t begin, std::int64_t count) { return as_doubles(sums_of(x.narrow(begin, count))); };
  require_close(sums_of(x), add(add(part(0, 123), part(123, 177)), part(300, 0)), 1e-13);
}

TEST_CASE("batch and group norm give the same bits for any number of threads") {
  const Shape shape{4, 64, 64, 24};
  const auto x = random_tensor<float>(shape, 1);
  const auto weight = random_tensor<float>({24}, 2);
  const auto dy = random_tensor<float>(shape, 4);
  const auto run = [&](int threads) {
    Tensor<float> y(shape), dx(shape), group_y(shape), group_dx(shape), dweight({24});
    Tensor<double> group_mean({4, 3}), group_rstd({4, 3});
    with_threads(threads, [&] {
      const auto [mean, rstd] = statistics_of(sums_of(x), 4 * 64 * 64, 1e-5);
      batch_norm<float, Cpu>({.x = x, .mean = mean, .rstd = rstd, .weight = weight, .relu = true, .y = y});
      const BatchNormBackward<float, Cpu> pass{.x = x, .mean = mean, .rstd = rstd, .weight = weight, .relu = true, .dy = dy};
      batch_norm_backward(pass, sums_of(pass), 4 * 64 * 64, dx, false);
      group_norm<float, Cpu>({.x = x, .groups = 3, .weight = weight, .y = group_y, .mean = group_mean, .rstd = group_rstd});
      group_norm_backward<float, Cpu>({.x = x,
                                       .groups = 3,
                                       .weight = weight,
                                       .mean = group_mean,
                                       .rstd = group_rstd,
                                       .dy = dy,
                                       .dx = group_dx,
                                       .dweight = dweight});
    });
    return std::vector{y, dx, group_y, group_dx, dweight};
  };
  const auto one = run(1);
  const auto three = run(3);
  for (std::size_t i = 0; i < one.size(); ++i) require_identical(one[i], three[i]);
}

// A group of a sample is a batch of its own with one channel, but for weight and bias.
TEMPLATE_TEST_CASE("group norm forward and backward", "", float, double) {
  using T = TestType;
  const std::int64_t batch = 3, rows = 20, channels = 12;
  const Shape shape{batch, 4, 5, channels};
  const auto x = random_tensor<T>(shape, 1, 2);
  const auto weight = random_tensor<T>({channels}, 2);
  const auto bias = random_tensor<T>({channels}, 3);
  const auto dy = random_tensor<T>(shape, 4);
  for (const int groups : {1, 3, 12}) {
    CAPTURE(groups);
    const std::int64_t width = channels / groups;
    Doubles expected_y(static_cast<std::size_t>(x.numel())), expected_dx(expected_y.size());
    Doubles expected_dweight(channels, 0), expected_dbias(channels, 0);
    for (std::int64_t part = 0; part < batch * groups; ++part) {
      std::vector<std::size_t> places;
      for (std::int64_t i = 0; i < rows * width; ++i) {
        const std::int64_t channel = part % groups * width + i % width;
        places.push_back(static_cast<std::size_t>((part / groups * rows + i / width) * channels + channel));
      }
      Doubles group, g;
      for (const std::size_t place : places) {
        group.push_back(static_cast<double>(x.data()[place]));
        g.push_back(static_cast<double>(dy.data()[place]) * static_cast<double>(weight.data()[place % channels]));
      }
      const auto one = naive(group, Doubles(group.size(), 0), {1}, {0}, g, false, 1e-5);
      for (std::size_t i = 0; i < places.size(); ++i) {
        const std::size_t channel = places[i] % channels;
        expected_y[places[i]] =
            one.y[i] * static_cast<double>(weight.data()[channel]) + static_cast<double>(bias.data()[channel]);
        expected_dx[places[i]] = one.dx[i];
        expected_dweight[channel] += static_cast<double>(dy.data()[places[i]]) * one.y[i];
        expected_dbias[channel] += static_cast<double>(dy.data()[places[i]]);
      }
    }
    Tensor<T> y(shape), dx(shape), dweight({channels}), dbias({channels});
    Tensor<double> mean({batch, groups}), rstd({batch, groups});
    group_norm<T, Cpu>({.x = x, .groups = groups, .weight = weight, .bias = bias, .y = y, .mean = mean, .rstd = rstd});
    GroupNormBackward<T, Cpu> pass{.x = x,
                                   .groups = groups,
                                   .weight = weight,
                                   .mean = mean,
                                   .rstd = rstd,
                                   .dy = dy,
                                   .dx = dx,
                                   .dweight = dweight,
                                   .dbias = dbias};
    group_norm_backward(pass);
    require_close(y, expected_y, tolerance<T>(1e-5));
    require_close(dx, expected_dx, tolerance<T>(5e-5));
    require_close(dweight, expected_dweight, tolerance<T>(5e-5));
    require_close(dbias, expected_dbias, tolerance<T>(5e-5));
    pass.accumulate_dx = pass.accumulate_dweight = pass.accumulate_dbias = true;
    group_norm_backward(pass);
    require_close(dx, add(expected_dx, expected_dx), tolerance<T>(5e-5));
    require_close(dweight, add(expected_dweight, expected_dweight), tolerance<T>(5e-5));
    require_close(dbias, add(expected_dbias, expected_dbias), tolerance<T>(5e-5));
  }
}

// Half types hold the rounded inputs of the float operation and its rounded results.
TEMPLATE_TEST_CASE("batch norm and group norm of half types", "", bfloat16, float16) {
  using T = TestType;
  for (const std::int64_t channels : {3, 150}) {
    CAPTURE(channels);
    const Shape shape{5, 9, 9, channels};
    const auto rounded = [&](std::uint32_t seed) {
      Tensor<T> half(shape);
      Tensor<float> widened(shape);
      cast(random_tensor<float>(shape, seed), half);
      cast(half, widened);
      return std::pair(half, widened);
    };
    const auto round_up = [&](const Tensor<float>& tensor) {
      Tensor<T> half(shape);
      cast(tensor, half);
      return half;
    };
    const auto [x, x_float] = rounded(1);
    const auto [residual, residual_float] = rounded(2);
    const auto [dy, dy_float] = rounded(3);
    const auto weight = random_tensor<float>({channels}, 4);
    const auto bias = random_tensor<float>({channels}, 5);
    require_close(sums_of(x), as_doubles(sums_of(x_float)), 1e-12);
    const auto [mean, rstd] = statistics_of(sums_of(x_float), 405, 1e-5);

    const auto run = [&](const auto& in, const auto& added, const auto& gradient, const auto& old) {
      using E = typename std::decay_t<decltype(in)>::value_type;
      Tensor<E> y(shape), dx = old.clone(), dresidual(shape), group_y(shape), group_dx = old.clone();
      Tensor<double> group_mean({5, 3}), group_rstd({5, 3});
      batch_norm<E, Cpu>(
          {.x = in, .mean = mean, .rstd = rstd, .weight = weight, .bias = bias, .residual = added, .relu = true, .y = y});
      const BatchNormBackward<E, Cpu> pass{
          .x = in, .mean = mean, .rstd = rstd, .weight = weight, .relu = true, .y = y, .dy = gradient};
      batch_norm_backward(pass, sums_of(pass, dresidual), 405, dx, true);
      group_norm<E, Cpu>({.x = in, .groups = 3, .weight = weight, .y = group_y, .mean = group_mean, .rstd = group_rstd});
      group_norm_backward<E, Cpu>({.x = in,
                                   .groups = 3,
                                   .weight = weight,
                                   .mean = group_mean,
                                   .rstd = group_rstd,
                                   .dy = gradient,
                                   .dx = group_dx,
                                   .accumulate_dx = true});
      return std::vector{y, dx, dresidual, group_y, group_dx};
    };
    const auto half = run(x, residual, dy, residual);
    const auto wide = run(x_float, residual_float, dy_float, residual_float);
    for (std::size_t i = 0; i < half.size(); ++i) {
      CAPTURE(i);
      require_identical(half[i], round_up(wide[i]));
    }
  }
}

TEST_CASE("batch norm and group norm name what does not fit") {
  const Tensor<float> x({2, 3});
  const Tensor<double> two({2}), three({3});
  Tensor<double> sums({5});
  CHECK_THROWS_WITH(batch_norm_sums(x, sums), "batch_norm_sums: there are 5 sums, but 3 channels need two each");
  CHECK_THROWS_WITH((batch_norm<float, Cpu>({.x = x, .mean = three, .rstd = two, .y = x.clone()})),
                    "batch_norm: rstd has shape [2], but needs 3 elements");
  CHECK_THROWS_WITH((group_norm<float, Cpu>({.x = x, .groups = 2, .y = x.clone(), .mean = two, .rstd = two})),
                    "group_norm: x [2, 3] is not [batch, ..., channels] with channels that 2 groups divide");
}
