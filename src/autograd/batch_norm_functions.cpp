#include <span>
#include <string_view>
#include <vector>

#include "autograd/norm_weights.hpp"
#include "trireme/autograd/batch_norm.hpp"
#include "trireme/autograd/record.hpp"
#include "trireme/core/bfloat16.hpp"
#include "trireme/core/float16.hpp"
#include "trireme/ops/norm/batch_norm.hpp"
#include "trireme/ops/norm/group_norm.hpp"

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

// Of the batch; updates the running ones. Ranks add up on the host, which waits for a GPU's sums.
template <typename T, typename D>
Statistics<D> batch_statistics(const BatchNormCall<T, D>& call) {
  const Shape channels{call.x.shape().back()};
  Tensor<double, D> sums({2 * channels[0]});
  ops::batch_norm_sums(call.x.value(), sums);
  auto rows = static_cast<double>(call.x.shape().rows());
  if (call.options.axis != nullptr) {
    const Tensor<double> here = sums.template to<Cpu>();
    std::vector<double> all(here.data(), here.data() + here.numel());
    all.push_back(rows);
    call.options.axis->all_reduce(std::span(all), ReduceOp::sum, "batch norm").wait_on_host();
    rows = all.back();
    sums = Tensor<double, D>::from(sums.shape(), std::span<const double>(all).first(all.size() - 1));
  }
  require(rows > 1, "{}: training needs more than one value per channel, x {} makes {} over all ranks", call.name,
          call.x.shape(), rows);
  const Statistics<D> batch{.mean = Tensor<double, D>(channels), .rstd = Tensor<double, D>(channels), .rows = rows};
  ops::batch_norm_statistics<Accumulate<T>, D>({.sums = sums,
                                                .rows = rows,
                                                .epsilon = call.options.epsilon,
                                                .momentum = call.options.momentum,
                                                .running_mean = call.running.mean,
                                                .running_var = call.running.var,
                                                .mean = batch.mean,
                                                .rstd = batch.rstd});
  return batch;
}

template <typename T, typename D>
Statistics<D> running_statistics(const BatchNormCall<T, D>& call) {
  const Shape channels{call.x.shape().back()};
  Statistics<D> result{.mean = Tensor<double, D>(channels), .rstd = Tensor<double, D>(channels)};
  ops::batch_norm_running_statistics(call.running.mean, call.running.var, call.options.epsilon, result.mean, result.rstd);
  return result;
}

template <typename T, typename D>
struct BatchNormGradients {
  using A = Accumulate<T>;
  ops::BatchNormBackward<T, D> pass;
  double rows;  // of all ranks; 0 where mean and rstd are constants
  Axis axis;
  Gradient<T, D> dx;
  Gradient<T, D> dresidual;
  Gradient<A, D> dweight;
  Gradient<A, D> dbias;

  void operator()(const Tensor<T, D>& dy) {
    pass.dy = dy;
    const std::int64_t channels = pass.mean.numel();
    Tensor<double, D> sums({2 * channels});
    ops::batch_norm_backward_sums(pass, sums);
    contribute(dbias, sums.narrow(0, channels));
    contribute(dweight, sums.narrow(channels, channels));
    if (!dx.needed() && !dresidual.needed()) return;
    if (rows == 0) {
      sums = {};
    } else if (dx.needed() && axis != nullptr) {
      const Tensor<double> here = sums.template to<Cpu>();
      axis->all_reduce(here.span(), ReduceOp::sum, "batch norm").wait_on_host();
      sums = here.template to<D>();
    }
    Tensor<T, D> through_residual;
    if (dresidual.needed()) through_residual = Tensor<T, D>(dy.shape());
    if (dx.needed()) {
      dx.contribute([&](Tensor<T, D>& out, bool accumulate) {
        ops::batch_norm_backward(pass, sums, rows, out, accumulate, through_residual);
      });
    } else {
      Tensor<T, D> unused(dy.shape());
      ops::batch_norm_backward(pass, sums, rows, unused, false, through_residual);
    }
    if (dresidual.needed()) dresidual.give(std::move(through_residual));
  }

 private:
  static void contribute(const Gradient<A, D>& gradient, const Tensor<double, D>& sums) {
    gradient.contribute([&](Tensor<A, D>& out, bool accumulate) { ops::batch_norm_weight_gradient(sums, out, accumulate); });
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
                                         .axis = call.options.axis,
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
  require_operands("batch_norm", x, optional(weight), optional(bias));
  return run<T, D>({"batch_norm", x, {}, weight, bias, running, options, false});
}

template <typename T, typename D>
Variable<T, D> batch_norm_relu(const Variable<T, D>& x, const Variable<Accumulate<T>, D>& weight,
                               const Variable<Accumulate<T>, D>& bias, const RunningStatistics<Accumulate<T>, D>& running,
                               const BatchNormArguments& options) {
  require_operands("batch_norm_relu", x, optional(weight), optional(bias));
  return run<T, D>({"batch_norm_relu", x, {}, weight, bias, running, options, true});
}

template <typename T, typename D>
Variable<T, D> batch_norm_add_relu(const Variable<T, D>& x, const Variable<T, D>& residual,
                                   const Variable<Accumulate<T>, D>& weight, const Variable<Accumulate<T>, D>& bias,
                                   const RunningStatistics<Accumulate<T>, D>& running, const BatchNormArguments& options) {
  require_operands("batch_norm_add_relu", x, residual, optional(weight), optional(bias));
  return run<T, D>({"batch_norm_add_relu", x, residual, weight, bias, running, options, true});
}

template <typename T, typename D>
Variable<T, D> group_norm(const Variable<T, D>& x, const Variable<Accumulate<T>, D>& weight,
                          const Variable<Accumulate<T>, D>& bias, int groups, double epsilon) {
  require_operands("group_norm", x, optional(weight), optional(bias));
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
  template Variable<T, TRIREME_DEVICE> batch_norm(const Variable<T, TRIREME_DEVICE>&, const Variable<A, TRIREME_DEVICE>&,  \
                                                  const Variable<A, TRIREME_DEVICE>&,                                      \
                                                  const RunningStatistics<A, TRIREME_DEVICE>&, const BatchNormArguments&); \
  template Variable<T, TRIREME_DEVICE> batch_norm_relu(                                                                    \
      const Variable<T, TRIREME_DEVICE>&, const Variable<A, TRIREME_DEVICE>&, const Variable<A, TRIREME_DEVICE>&,          \
      const RunningStatistics<A, TRIREME_DEVICE>&, const BatchNormArguments&);                                             \
  template Variable<T, TRIREME_DEVICE> batch_norm_add_relu(                                                                \
      const Variable<T, TRIREME_DEVICE>&, const Variable<T, TRIREME_DEVICE>&, const Variable<A, TRIREME_DEVICE>&,          \
      const Variable<A, TRIREME_DEVICE>&, const RunningStatistics<A, TRIREME_DEVICE>&, const BatchNormArguments&);         \
  template Variable<T, TRIREME_DEVICE> group_norm(const Variable<T, TRIREME_DEVICE>&, const Variable<A, TRIREME_DEVICE>&,  \
                                                  const Variable<A, TRIREME_DEVICE>&, int, double)
TRIREME_INSTANTIATE(float, float);
TRIREME_INSTANTIATE(double, double);
TRIREME_INSTANTIATE(bfloat16, float);
TRIREME_INSTANTIATE(float16, float);
#undef TRIREME_INSTANTIATE

}  // namespace trireme
