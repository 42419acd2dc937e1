#include <cmath>
#include <span>
#include <string_view>
#include <vector>

#include "autograd/norm_weights.hpp"
#include "trireme/autograd/batch_norm.hpp"
#include "trireme/autograd/record.hpp"
#include "trireme/core/bfloat16.hpp"
#include "trireme/core/float16.hpp"
#include "trireme/ops/batch_norm.hpp"
#include "trireme/ops/group_norm.hpp"

namespace trireme {
namespace {

template <typename T, typename D>
struct BatchNormCall {
  using A = Accumulate<T>;
  std::string_view name;
  Variable<T, D> x;
  Variable<T, D> residual;  // may be undefined
  Variable<A, D> weight;
  Variable<A, D> bias;
  RunningStatistics<A, D> running;
  BatchNormArguments options;
  bool relu;
};

template <typename T, typename D>
void check(const BatchNormCall<T, D>& call) {
  const Shape& shape = call.x.shape();
  require(shape.size() > 0 && shape.back() > 0, "{}: x has shape {}; the last dim, the channels, must not be empty", call.name,
          shape);
  const auto check_vector = [&](std::string_view what, const Tensor<Accumulate<T>, D>& vector) {
    require(!vector.defined() || vector.numel() == shape.back(), "{}: {} has shape {}, but x {} has {} channels", call.name,
            what, vector.shape(), shape, shape.back());
  };
  check_vector("weight", call.weight.value());
  check_vector("bias", call.bias.value());
  check_vector("the running mean", call.running.mean);
  check_vector("the running variance", call.running.var);
  require(call.options.training || (call.running.mean.defined() && call.running.var.defined()),
          "{}: evaluation needs running statistics", call.name);
}

template <typename D>
struct Statistics {
  Tensor<double, D> mean;
  Tensor<double, D> rstd;
  double rows = 0;  // of all ranks
};

// average[channel] = (1 - momentum) * average[channel] + momentum * values[channel], if there are averages.
template <typename A, typename D>
void follow(const Tensor<A, D>& average, std::span<const double> values, double momentum) {
  if (!average.defined()) return;
  for (std::size_t channel = 0; channel < values.size(); ++channel) {
    A& element = average.data()[channel];
    element = static_cast<A>((1 - momentum) * static_cast<double>(element) + momentum * values[channel]);
  }
}

// Of the batch; updates the running ones, unless a batch that overflowed would spoil them.
template <typename T, typename D>
Statistics<D> batch_statistics(const BatchNormCall<T, D>& call) {
  const Shape channels{call.x.shape().back()};
  const auto count = static_cast<std::size_t>(channels[0]);
  std::vector<double> sums(2 * count + 1);
  ops::batch_norm_sums(call.x.value(), std::span(sums).first(2 * count));
  sums.back() = static_cast<double>(call.x.shape().rows());
  if (call.options.sum) call.options.sum(sums);
  const double rows = sums.back();
  require(rows > 1, "{}: training needs more than one value per channel, x {} makes {} over all ranks", call.name,
          call.x.shape(), rows);
  const Statistics<D> batch{.mean = Tensor<double, D>(channels), .rstd = Tensor<double, D>(channels), .rows = rows};
  const auto means = std::span(sums).first(count), unbiased = std::span(sums).subspan(count, count);
  bool finite = true;
  for (std::size_t channel = 0; channel < count; ++channel) {
    means[channel] /= rows;
    const double difference = unbiased[channel] / rows - means[channel] * means[channel];
    const double variance = difference < 0 ? 0 : difference;  // rounding; NaN stays
    batch.mean.data()[channel] = means[channel];
    batch.rstd.data()[channel] = 1 / std::sqrt(variance + call.options.epsilon);
    unbiased[channel] = variance * rows / (rows - 1);
    for (const double value : {means[channel], unbiased[channel]}) {
      finite = finite && std::isfinite(static_cast<Accumulate<T>>(value));
    }
  }
  if (finite) {
    follow(call.running.mean, means, call.options.momentum);
    follow(call.running.var, unbiased, call.options.momentum);
  }
  return batch;
}

template <typename T, typename D>
Statistics<D> running_statistics(const BatchNormCall<T, D>& call) {
  const Shape channels{call.x.shape().back()};
  Statistics<D> result{.mean = Tensor<double, D>(channels), .rstd = Tensor<double, D>(channels)};
  for (std::int64_t channel = 0; channel < channels[0]; ++channel) {
    result.mean.data()[channel] = static_cast<double>(call.running.mean.data()[channel]);
    const auto variance = static_cast<double>(call.running.var.data()[channel]);
    result.rstd.data()[channel] = 1 / std::sqrt(variance + call.options.epsilon);
  }
  return result;
}

template <typename T, typename D>
struct BatchNormGradients {
  using A = Accumulate<T>;
  ops::BatchNormBackward<T, D> pass;
  double rows;  // of all ranks; 0 where mean and rstd are constants
  SumOverRanks sum;
  Gradient<T, D> dx;
  Gradient<T, D> dresidual;
  Gradient<A, D> dweight;
  Gradient<A, D> dbias;

  void operator()(const Tensor<T, D>& dy) {
    pass.dy = dy;
    std::vector<double> sums(2 * static_cast<std::size_t>(pass.mean.numel()));
    ops::batch_norm_backward_sums(pass, sums);
    const auto of_dy = std::span<const double>(sums).first(sums.size() / 2);
    contribute(dbias, of_dy);
    contribute(dweight, std::span<const double>(sums).last(of_dy.size()));
    if (!dx.needed() && !dresidual.needed()) return;
    if (rows == 0) {
      sums.clear();
    } else if (dx.needed()) {
      if (sum) sum(sums);
      for (double& average : sums) average /= rows;
    }
    Tensor<T, D> through_residual;
    if (dresidual.needed()) through_residual = Tensor<T, D>(dy.shape());
    if (dx.needed()) {
      dx.contribute([&](Tensor<T, D>& out, bool accumulate) {
        ops::batch_norm_backward<T, D>(pass, sums, out, accumulate, through_residual);
      });
    } else {
      Tensor<T, D> unused(dy.shape());
      ops::batch_norm_backward<T, D>(pass, sums, unused, false, through_residual);
    }
    if (dresidual.needed()) dresidual.give(std::move(through_residual));
  }

 private:
  static void contribute(const Gradient<A, D>& gradient, std::span<const double> values) {
    gradient.contribute([&](Tensor<A, D>& out, bool accumulate) {
      for (std::size_t channel = 0; channel < values.size(); ++channel) {
        const auto value = static_cast<A>(values[channel]);
        out.data()[channel] = accumulate ? out.data()[channel] + value : value;
      }
    });
  }
};

template <typename T, typename D>
Variable<T, D> run(const BatchNormCall<T, D>& call) {
  check(call);
  const Statistics<D> statistics = call.options.training ? batch_statistics(call) : running_statistics(call);
  const Tensor<T, D> y(call.x.shape());
  ops::batch_norm<T, D>({.x = call.x.value(),
                         .mean = statistics.mean,
                         .rstd = statistics.rstd,
                         .weight = call.weight.value(),
                         .bias = call.bias.value(),
                         .residual = call.residual.value(),
                         .relu = call.relu,
                         .y = y});
  return record(call.name, y, {call.x.slot(), call.residual.slot(), call.weight.slot(), call.bias.slot()},
                BatchNormGradients<T, D>{.pass = {.x = call.x.value(),
                                                  .mean = statistics.mean,
                                                  .rstd = statistics.rstd,
                                                  .weight = call.weight.value(),
                                                  .y = call.relu ? y : Tensor<T, D>()},
                                         .rows = statistics.rows,
                                         .sum = call.options.sum,
                                         .dx = call.x.gradient(),
                                         .dresidual = call.residual.gradient(),
                                         .dweight = call.weight.gradient(),
                                         .dbias = call.bias.gradient()});
}

}  // namespace

template <typename T, typename D>
Variable<T, D> batch_norm(const Variable<T, D>& x, const Variable<Accumulate<T>, D>& weight,
                          const Variable<Accumulate<T>, D>& bias, const RunningStatistics<Accumulate<T>, D>& running,
                          const BatchNormArguments& options) {
  return run<T, D>({"batch_norm", x, {}, weight, bias, running, options, false});
}

template <typename T, typename D>
Variable<T, D> batch_norm_relu(const Variable<T, D>& x, const Variable<Accumulate<T>, D>& weight,
                               const Variable<Accumulate<T>, D>& bias, const RunningStatistics<Accumulate<T>, D>& running,
                               const BatchNormArguments& options) {
  return run<T, D>({"batch_norm_relu", x, {}, weight, bias, running, options, true});
}

template <typename T, typename D>
Variable<T, D> batch_norm_add_relu(const Variable<T, D>& x, const Variable<T, D>& residual,
                                   const Variable<Accumulate<T>, D>& weight, const Variable<Accumulate<T>, D>& bias,
                                   const RunningStatistics<Accumulate<T>, D>& running, const BatchNormArguments& options) {
  return run<T, D>({"batch_norm_add_relu", x, residual, weight, bias, running, options, true});
}

template <typename T, typename D>
Variable<T, D> group_norm(const Variable<T, D>& x, const Variable<Accumulate<T>, D>& weight,
                          const Variable<Accumulate<T>, D>& bias, int groups, double epsilon) {
  require(x.shape().size() >= 2 && groups > 0, "group_norm: x {} is not [batch, ..., channels], or {} groups are below 1",
          x.shape(), groups);
  const Shape of_groups{x.shape()[0], groups};
  const ops::GroupNormForward<T, D> forward{.x = x.value(),
                                            .groups = groups,
                                            .weight = weight.value(),
                                            .bias = bias.value(),
                                            .epsilon = epsilon,
                                            .y = Tensor<T, D>(x.shape()),
                                            .mean = Tensor<double, D>(of_groups),
                                            .rstd = Tensor<double, D>(of_groups)};
  ops::group_norm(forward);
  return record(
      "group_norm", forward.y, {x.slot(), weight.slot(), bias.slot()},
      [pass =
           ops::GroupNormBackward<T, D>{
               .x = x.value(), .groups = groups, .weight = weight.value(), .mean = forward.mean, .rstd = forward.rstd},
       dx = x.gradient(), dweight = weight.gradient(), dbias = bias.gradient()](const Tensor<T, D>& dy) mutable {
        pass.dy = dy;
        const auto run = [&](const Tensor<T, D>& out, bool accumulate) {
          pass.dx = out;
          pass.accumulate_dx = accumulate;
          contribute_to_weights(pass, dweight, dbias, [](const auto& full) { ops::group_norm_backward(full); });
        };
        if (!dx.needed()) return run(Tensor<T, D>(dy.shape()), false);
        dx.contribute(run);
      });
}

#define TRIREME_INSTANTIATE(T, A)                                                                                          \
  template Variable<T, Cpu> batch_norm(const Variable<T, Cpu>&, const Variable<A, Cpu>&, const Variable<A, Cpu>&,          \
                                       const RunningStatistics<A, Cpu>&, const BatchNormArguments&);                       \
  template Variable<T, Cpu> batch_norm_relu(const Variable<T, Cpu>&, const Variable<A, Cpu>&, const Variable<A, Cpu>&,     \
                                            const RunningStatistics<A, Cpu>&, const BatchNormArguments&);                  \
  template Variable<T, Cpu> batch_norm_add_relu(const Variable<T, Cpu>&, const Variable<T, Cpu>&, const Variable<A, Cpu>&, \
                                                const Variable<A, Cpu>&, const RunningStatistics<A, Cpu>&,                 \
                                                const BatchNormArguments&);                                                \
  template Variable<T, Cpu> group_norm(const Variable<T, Cpu>&, const Variable<A, Cpu>&, const Variable<A, Cpu>&, int, double)
TRIREME_INSTANTIATE(float, float);
TRIREME_INSTANTIATE(double, double);
TRIREME_INSTANTIATE(bfloat16, float);
TRIREME_INSTANTIATE(float16, float);
#undef TRIREME_INSTANTIATE

}  // namespace trireme
