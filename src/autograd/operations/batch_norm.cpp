#include "trireme/ops/norm/batch_norm.hpp"

#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "autograd/operations/norm_weights.hpp"
#include "precision/instantiate.hpp"
#include "trireme/autograd/operations/norm.hpp"
#include "trireme/autograd/record.hpp"
#include "trireme/core/bfloat16.hpp"
#include "trireme/core/float16.hpp"
#include "trireme/ops/norm/group_norm.hpp"

namespace trireme {
namespace {

template <typename A, typename D>
void check(std::string_view name, const Shape& x, const Tensor<A, D>& weight, const Tensor<A, D>& bias,
           const RunningStatistics<A, D>& running, const BatchNormArguments& options) {
  require(x.size() > 0 && x.back() > 0, "{}: x has shape {}; the last dim, the channels, must not be empty", name, x);
  const auto check_vector = [&](std::string_view what, const Tensor<A, D>& vector) {
    require(!vector.defined() || vector.numel() == x.back(), "{}: {} has shape {}, but x {} has {} channels", name, what,
            vector.shape(), x, x.back());
  };
  check_vector("weight", weight);
  check_vector("bias", bias);
  check_vector("the running mean", running.mean);
  check_vector("the running variance", running.var);
  require(options.training || (running.mean.defined() && running.var.defined()), "{}: evaluation needs running statistics",
          name);
}

// Base of the batch norms.
template <bool relu_>
struct BatchNormalization {
  static constexpr bool repeatable = false;
  static constexpr bool relu = relu_;
  BatchNormArguments options;
  double rows = 0;  // of all ranks; 0 where mean and rstd are constants

  void describe(Attributes& to) const {
    to["training"] = std::int64_t{options.training};
    to["momentum"] = options.momentum;
    to["epsilon"] = options.epsilon;
  }

 protected:
  template <typename T, typename D>
  void run(std::string_view name, const RunningStatistics<Accumulate<T>, D>& running, ops::BatchNormForward<T, D> pass) {
    if (options.training) {
      find_statistics(name, running, pass);
    } else {
      ops::batch_norm_running_statistics(running.mean, running.var, options.epsilon, pass.mean, pass.rstd);
    }
    pass.relu = relu;
    ops::batch_norm(pass);
  }

  template <typename T, typename D, typename A = Accumulate<T>>
  void run_backward(ops::BatchNormBackward<T, D> pass, const Gradient<T, D>& dx, const Gradient<T, D>& dresidual,
                    const Gradient<A, D>& dweight, const Gradient<A, D>& dbias) const {
    const std::int64_t channels = pass.mean.numel();
    Tensor<double, D> sums({2 * channels});
    Tensor<T, D> through_residual;
    if (dresidual.needed()) through_residual = Tensor<T, D>(pass.dy.shape());
    pass.relu = relu;
    ops::batch_norm_backward_sums(pass, sums, through_residual);
    contribute(dbias, sums.narrow(0, channels));
    contribute(dweight, sums.narrow(channels, channels));
    if (dx.needed()) {
      if (through_residual.defined()) {
        pass.dy = through_residual;
        pass.relu = false;
      }
      contribute_to_input(pass, sums, dx);
    }
    if (dresidual.needed()) dresidual.give(std::move(through_residual));
  }

 private:
  template <typename T, typename D>
  void contribute_to_input(const ops::BatchNormBackward<T, D>& pass, Tensor<double, D>& sums, const Gradient<T, D>& dx) const {
    if (rows == 0) {
      sums = {};
    } else if (options.axis != nullptr) {
      const Tensor<double> here = sums.template to<Cpu>();
      options.axis->all_reduce(here.span(), ReduceOp::sum, "batch norm").wait_on_host();
      sums = here.template to<D>();
    }
    dx.contribute([&](Tensor<T, D>& out, bool accumulate) { ops::batch_norm_backward(pass, sums, rows, out, accumulate); });
  }

  // Computes the statistics of the batch and updates the running ones, once if the layer is recomputed. Sums over ranks are
  // computed on the host, which waits for a GPU's sums.
  template <typename T, typename D, typename A = Accumulate<T>>
  void find_statistics(std::string_view name, const RunningStatistics<A, D>& running, const ops::BatchNormForward<T, D>& pass) {
    const Shape& shape = pass.x.shape();
    const auto add_up = [&] {
      Tensor<double, D> here({2 * shape.back()});
      ops::batch_norm_sums(pass.x, here);
      const auto rows_here = static_cast<double>(shape.rows());
      if (options.axis == nullptr) return std::pair(here, rows_here);
      const Tensor<double> on_host = here.template to<Cpu>();
      std::vector<double> all(on_host.data(), on_host.data() + on_host.numel());
      all.push_back(rows_here);
      options.axis->all_reduce(std::span(all), ReduceOp::sum, "batch norm").wait_on_host();
      return std::pair(Tensor<double, D>::from(here.shape(), std::span<const double>(all).first(all.size() - 1)), all.back());
    };
    const auto [sums, rows_of_all] = Tape::once(add_up);
    rows = rows_of_all;
    require(rows > 1, "{}: training needs more than one value per channel, x {} makes {} over all ranks", name, shape, rows);
    ops::batch_norm_statistics<A, D>({.sums = sums,
                                      .rows = rows,
                                      .epsilon = options.epsilon,
                                      .momentum = options.momentum,
                                      .running_mean = Tape::repeats() ? Tensor<A, D>() : running.mean,
                                      .running_var = Tape::repeats() ? Tensor<A, D>() : running.var,
                                      .mean = pass.mean,
                                      .rstd = pass.rstd});
  }

  template <typename A, typename D>
  static void contribute(const Gradient<A, D>& gradient, const Tensor<double, D>& sums) {
    gradient.contribute([&](Tensor<A, D>& out, bool accumulate) { ops::batch_norm_weight_gradient(sums, out, accumulate); });
  }
};

struct BatchNorm : BatchNormalization<false> {
  static constexpr std::string_view name = "batch_norm";

  template <typename T, typename D>
  void forward(const Tensor<T, D>& x, const auto& weight, const auto& bias, const auto& running_mean, const auto& running_var,
               const auto& y, const auto& mean, const auto& rstd) {
    run<T, D>(name, {running_mean, running_var}, {.x = x, .mean = mean, .rstd = rstd, .weight = weight, .bias = bias, .y = y});
  }
  template <typename T, typename D>
  void backward(const Tensor<T, D>& dy, const auto& x, const auto& weight, const auto& mean, const auto& rstd,
                const Gradient<T, D>& dx, const auto& dweight, const auto& dbias) const {
    run_backward<T, D>({.x = x, .mean = mean, .rstd = rstd, .weight = weight, .dy = dy}, dx, {}, dweight, dbias);
  }
};

struct BatchNormRelu : BatchNormalization<true> {
  static constexpr std::string_view name = "batch_norm_relu";

  template <typename T, typename D>
  void forward(const Tensor<T, D>& x, const auto& weight, const auto& bias, const auto& running_mean, const auto& running_var,
               const auto& y, const auto& mean, const auto& rstd) {
    run<T, D>(name, {running_mean, running_var}, {.x = x, .mean = mean, .rstd = rstd, .weight = weight, .bias = bias, .y = y});
  }
  template <typename T, typename D>
  void backward(const Tensor<T, D>& dy, const auto& x, const auto& weight, const auto& bias, const auto& mean, const auto& rstd,
                const Gradient<T, D>& dx, const auto& dweight, const auto& dbias) const {
    run_backward<T, D>({.x = x, .mean = mean, .rstd = rstd, .weight = weight, .bias = bias, .dy = dy}, dx, {}, dweight, dbias);
  }
};

struct BatchNormAddRelu : BatchNormalization<true> {
  static constexpr std::string_view name = "batch_norm_add_relu";

  template <typename T, typename D>
  void forward(const Tensor<T, D>& x, const auto& residual, const auto& weight, const auto& bias, const auto& running_mean,
               const auto& running_var, const auto& y, const auto& mean, const auto& rstd) {
    run<T, D>(name, {running_mean, running_var},
              {.x = x, .mean = mean, .rstd = rstd, .weight = weight, .bias = bias, .residual = residual, .y = y});
  }
  template <typename T, typename D>
  void backward(const Tensor<T, D>& dy, const auto& x, const auto& weight, const auto& y, const auto& mean, const auto& rstd,
                const Gradient<T, D>& dx, const Gradient<T, D>& dresidual, const auto& dweight, const auto& dbias) const {
    run_backward<T, D>({.x = x, .mean = mean, .rstd = rstd, .weight = weight, .y = y, .dy = dy}, dx, dresidual, dweight, dbias);
  }
};

template <typename O, typename T, typename D, typename A = Accumulate<T>>
Variable<T, D> record_batch_norm(const Variable<A, D>& weight, const Variable<A, D>& bias,
                                 const RunningStatistics<A, D>& running, const BatchNormArguments& options,
                                 const Variable<T, D>& x, const auto&... residual) {
  constexpr bool keeps_y = O::relu && sizeof...(residual) > 0;
  const auto results = [&] {
    check(O::name, x.shape(), weight.value(), bias.value(), running, options);
    const Result<T, D> y{x.shape()};
    const Result<double, D> of_channels{{x.shape().back()}};
    if constexpr (keeps_y) {
      return std::tuple(kept(y), internal(of_channels), internal(of_channels));
    } else {
      return std::tuple(y, internal(of_channels), internal(of_channels));
    }
  };
  const auto record_with = [&](const auto& of_bias) {
    return record(O{{options}}, results, kept(x), residual..., kept(optional(weight)), of_bias, optional(running.mean),
                  optional(running.var));
  };
  if constexpr (O::relu && !keeps_y) {
    return record_with(kept(optional(bias)));
  } else {
    return record_with(optional(bias));
  }
}

struct GroupNorm {
  static constexpr std::string_view name = "group_norm";
  int groups;
  double epsilon;

  template <typename T, typename D>
  void forward(const Tensor<T, D>& x, const auto& weight, const auto& bias, const auto& y, const auto& mean,
               const auto& rstd) const {
    ops::group_norm<T, D>(
        {.x = x, .groups = groups, .weight = weight, .bias = bias, .epsilon = epsilon, .y = y, .mean = mean, .rstd = rstd});
  }
  template <typename T, typename D>
  void backward(const Tensor<T, D>& dy, const auto& x, const auto& weight, const auto& mean, const auto& rstd,
                const Gradient<T, D>& dx, const auto& dweight, const auto& dbias) const {
    ops::GroupNormBackward<T, D> pass{.x = x, .groups = groups, .weight = weight, .mean = mean, .rstd = rstd, .dy = dy};
    contribute_to_all(pass, dx, dweight, dbias, [](const auto& full) { ops::group_norm_backward(full); });
  }
  void describe(Attributes& to) const {
    to["groups"] = std::int64_t{groups};
    to["epsilon"] = epsilon;
  }
};

}  // namespace

template <typename T, typename D>
Variable<T, D> batch_norm(const Variable<T, D>& x, const Variable<Accumulate<T>, D>& weight,
                          const Variable<Accumulate<T>, D>& bias, const RunningStatistics<Accumulate<T>, D>& running,
                          const BatchNormArguments& options) {
  return record_batch_norm<BatchNorm>(weight, bias, running, options, x);
}

template <typename T, typename D>
Variable<T, D> batch_norm_relu(const Variable<T, D>& x, const Variable<Accumulate<T>, D>& weight,
                               const Variable<Accumulate<T>, D>& bias, const RunningStatistics<Accumulate<T>, D>& running,
                               const BatchNormArguments& options) {
  return record_batch_norm<BatchNormRelu>(weight, bias, running, options, x);
}

template <typename T, typename D>
Variable<T, D> batch_norm_add_relu(const Variable<T, D>& x, const Variable<T, D>& residual,
                                   const Variable<Accumulate<T>, D>& weight, const Variable<Accumulate<T>, D>& bias,
                                   const RunningStatistics<Accumulate<T>, D>& running, const BatchNormArguments& options) {
  return record_batch_norm<BatchNormAddRelu>(weight, bias, running, options, x, residual);
}

template <typename T, typename D>
Variable<T, D> group_norm(const Variable<T, D>& x, const Variable<Accumulate<T>, D>& weight,
                          const Variable<Accumulate<T>, D>& bias, int groups, double epsilon) {
  const auto results = [&] {
    require(x.shape().size() >= 2 && groups > 0, "group_norm: x {} is not [batch, ..., channels], or {} groups are below 1",
            x.shape(), groups);
    const Result<double, D> of_groups{{x.shape()[0], groups}};
    return std::tuple(Result<T, D>{x.shape()}, internal(of_groups), internal(of_groups));
  };
  return record(GroupNorm{groups, epsilon}, results, kept(x), kept(optional(weight)), optional(bias));
}

TRIREME_INSTANTIATE(FLOATS, batch_norm, TRIREME_DEVICE)
TRIREME_INSTANTIATE(FLOATS, batch_norm_relu, TRIREME_DEVICE)
TRIREME_INSTANTIATE(FLOATS, batch_norm_add_relu, TRIREME_DEVICE)
TRIREME_INSTANTIATE(FLOATS, group_norm, TRIREME_DEVICE)

}  // namespace trireme
