#include "ops/cuda_compare.hpp"
#include "trireme/ops/norm/batch_norm.hpp"

// The batch norm of a GPU against that of the CPU.
using namespace trireme;
using namespace trireme::ops;

namespace {

template <typename T>
Tensor<T, Cuda> there(const Tensor<T>& x) {
  return x.defined() ? x.template to<Cuda>() : Tensor<T, Cuda>();
}

template <typename A>
void check_statistics(const BatchNormStatistics<A, Cpu>& pass) {
  const BatchNormStatistics<A, Cuda> pass_there{.sums = there(pass.sums),
                                                .rows = pass.rows,
                                                .running_mean = there(pass.running_mean),
                                                .running_var = there(pass.running_var),
                                                .mean = there(pass.mean),
                                                .rstd = there(pass.rstd)};
  batch_norm_statistics(pass);
  batch_norm_statistics(pass_there);
  require_close(pass_there.mean.template to<Cpu>(), as_doubles(pass.mean), 1e-12);
  require_close(pass_there.rstd.template to<Cpu>(), as_doubles(pass.rstd), 1e-9);
  require_same(pass_there.running_mean, pass.running_mean);
  require_same(pass_there.running_var, pass.running_var);
  Tensor<double> mean(pass.mean.shape()), rstd(pass.mean.shape());
  Tensor<double, Cuda> mean_there(mean.shape()), rstd_there(mean.shape());
  batch_norm_running_statistics(pass.running_mean, pass.running_var, 1e-3, mean, rstd);
  batch_norm_running_statistics(there(pass.running_mean), there(pass.running_var), 1e-3, mean_there, rstd_there);
  require_close(mean_there.template to<Cpu>(), as_doubles(mean), 1e-12);
  require_close(rstd_there.template to<Cpu>(), as_doubles(rstd), 1e-12);
}

template <typename T>
void check(const Shape& shape, bool weighted, bool residual, bool relu) {
  using A = Accumulate<T>;
  CAPTURE(shape.str(), weighted, residual, relu);
  const std::int64_t channels = shape.back();
  const auto rows = static_cast<double>(shape.rows());
  const auto vector = [&](std::uint32_t seed) { return weighted ? random_tensor<A>({channels}, seed) : Tensor<A>(); };
  const auto x = random_tensor<T>(shape, 1, 2);
  const auto x_there = there(x);
  Tensor<double> sums({2 * channels});
  Tensor<double, Cuda> sums_there({2 * channels});
  batch_norm_sums(x, sums);
  batch_norm_sums(x_there, sums_there);
  require_close(sums_there.to<Cpu>(), as_doubles(sums), 1e-10);
  const Tensor<double> mean({channels}), rstd({channels});
  check_statistics<A>({.sums = sums,
                       .rows = rows,
                       .running_mean = random_tensor<A>({channels}, 8),
                       .running_var = Tensor<A>::full({channels}, 1),
                       .mean = mean,
                       .rstd = rstd});

  const BatchNormForward<T, Cpu> pass{.x = x,
                                      .mean = mean,
                                      .rstd = rstd,
                                      .weight = vector(2),
                                      .bias = vector(3),
                                      .residual = residual ? random_tensor<T>(shape, 4) : Tensor<T>(),
                                      .relu = relu,
                                      .y = Tensor<T>(shape)};
  const BatchNormForward<T, Cuda> pass_there{.x = x_there,
                                             .mean = there(mean),
                                             .rstd = there(rstd),
                                             .weight = there(pass.weight),
                                             .bias = there(pass.bias),
                                             .residual = there(pass.residual),
                                             .relu = relu,
                                             .y = Tensor<T, Cuda>(shape)};
  batch_norm(pass);
  batch_norm(pass_there);
  require_same(pass_there.y, pass.y, 10);

  const BatchNormBackward<T, Cpu> back{.x = x,
                                       .mean = mean,
                                       .rstd = rstd,
                                       .weight = pass.weight,
                                       .bias = pass.bias,
                                       .relu = relu,
                                       .y = residual ? pass.y : Tensor<T>(),
                                       .dy = random_tensor<T>(shape, 5)};
  const BatchNormBackward<T, Cuda> back_there{.x = x_there,
                                              .mean = there(mean),
                                              .rstd = there(rstd),
                                              .weight = pass_there.weight,
                                              .bias = pass_there.bias,
                                              .relu = relu,
                                              .y = there(back.y),
                                              .dy = there(back.dy)};
  const auto dresidual = residual ? Tensor<T>(shape) : Tensor<T>();
  const auto dresidual_there = residual ? Tensor<T, Cuda>(shape) : Tensor<T, Cuda>();
  batch_norm_backward_sums(back, sums, dresidual);
  batch_norm_backward_sums(back_there, sums_there, dresidual_there);
  require_close(sums_there.to<Cpu>(), as_doubles(sums), tolerance<A>(1e-5));
  if (residual) require_identical(dresidual_there.template to<Cpu>(), dresidual);
  for (const bool accumulate : {false, true}) {
    auto gradient = random_tensor<A>({channels}, 6);
    auto gradient_there = there(gradient);
    batch_norm_weight_gradient(sums.narrow(channels, channels), gradient, accumulate);
    batch_norm_weight_gradient(sums_there.narrow(channels, channels), gradient_there, accumulate);
    require_same(gradient_there, gradient, 300);
    for (const bool training : {true, false}) {
      auto dx = random_tensor<T>(shape, 7);
      auto dx_there = there(dx);
      batch_norm_backward(back, training ? sums : Tensor<double>(), rows, dx, accumulate);
      batch_norm_backward(back_there, training ? sums_there : Tensor<double, Cuda>(), rows, dx_there, accumulate);
      require_same(dx_there, dx, 10);
    }
  }
}

}  // namespace

TEMPLATE_TEST_CASE("batch norm on the GPU", "", float, double, bfloat16, float16) {
  check<TestType>({8, 28, 28, 64}, true, true, true);
  check<TestType>({4, 7, 7, 2048}, true, false, true);
  check<TestType>({2, 3, 3, 16}, false, false, true);
  check<TestType>({2, 40, 40, 256}, true, true, false);
  check<TestType>({64, 4104}, false, false, false);
  check<TestType>({3, 5, 7, 5}, true, true, false);
  check<TestType>({100, 1}, false, true, true);
}
