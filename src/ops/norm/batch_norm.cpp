#include <vector>

#include "ops/norm/batch_norm_on.hpp"
#include "ops/norm/channels.hpp"
#include "precision/instantiate.hpp"

namespace trireme::ops {
namespace {

template <typename T>
ChannelRows<T> rows_of(const Tensor<T, Cpu>& x) {
  return {.x = x.data(), .rows = x.shape().rows(), .channels = x.shape().back()};
}

template <typename T, typename Pass>
ChannelNorm<T> norm_of(const Pass& pass) {
  return {.mean = pass.mean.data(), .rstd = pass.rstd.data(), .weight = pass.weight.data(), .bias = pass.bias.data()};
}

template <typename T>
PassedGradients<T> gradients_of(const BatchNormBackward<T, Cpu>& pass) {
  return {.dy = pass.dy.data(), .relu = pass.relu, .y = pass.y.data()};
}

}  // namespace

template <>
template <typename T>
void BatchNorm<Cpu>::sums(const Tensor<T, Cpu>& x, Tensor<double, Cpu>& sums) {
  sum_channels(rows_of(x), sums.data());
}

template <>
template <typename A>
void BatchNorm<Cpu>::statistics(const BatchNormStatistics<A, Cpu>& pass) {
  batch_statistics(pass)(device::LoneThread{});
}

template <>
template <typename A>
void BatchNorm<Cpu>::running_statistics(const Tensor<A, Cpu>& running_mean, const Tensor<A, Cpu>& running_var, double epsilon,
                                        Tensor<double, Cpu>& mean, Tensor<double, Cpu>& rstd) {
  const RunningStatisticsOfChannel<A> body{running_mean.data(), running_var.data(), epsilon, mean.data(), rstd.data()};
  for (std::int64_t channel = 0; channel < mean.numel(); ++channel) body(channel);
}

template <>
template <typename T>
void BatchNorm<Cpu>::forward(const BatchNormForward<T, Cpu>& pass) {
  normalize_channels(rows_of(pass.x), norm_of<T>(pass), pass.residual.data(), pass.relu, pass.y.data());
}

template <>
template <typename T>
void BatchNorm<Cpu>::backward_sums(const BatchNormBackward<T, Cpu>& pass, Tensor<double, Cpu>& sums,
                                   const Tensor<T, Cpu>& dresidual) {
  sum_channel_gradients(rows_of(pass.x), norm_of<T>(pass), gradients_of(pass), dresidual.data(), sums.data());
}

template <>
template <typename A>
void BatchNorm<Cpu>::weight_gradient(const Tensor<double, Cpu>& sums, Tensor<A, Cpu>& gradient, bool accumulate) {
  for (std::int64_t channel = 0; channel < sums.numel(); ++channel) {
    const auto value = static_cast<A>(sums.data()[channel]);
    gradient.data()[channel] = accumulate ? gradient.data()[channel] + value : value;
  }
}

template <>
template <typename T>
void BatchNorm<Cpu>::backward(const BatchNormBackward<T, Cpu>& pass, const BatchNormInputGradient<T, Cpu>& gradient) {
  const auto norm = norm_of<T>(pass);
  const auto channels = static_cast<std::size_t>(pass.x.shape().back());
  std::vector<double> averages(2 * channels, 0.0);
  if (gradient.sums.defined()) {
    for (std::size_t index = 0; index < 2 * channels; ++index) {
      const double average = gradient.sums.data()[index] / gradient.rows;
      averages[index] = norm.weight_or_one(static_cast<std::int64_t>(index % channels)) * average;
    }
  }
  channel_gradients<T>(rows_of(pass.x), norm,
                       {.of = gradients_of(pass),
                        .average_g = averages.data(),
                        .average_gn = averages.data() + channels,
                        .dx = gradient.dx.data(),
                        .accumulate_dx = gradient.accumulate_dx});
}

TRIREME_INSTANTIATE(FLOATS, batch_norm_sums, Cpu)
TRIREME_INSTANTIATE(FLOATS, batch_norm, Cpu)
TRIREME_INSTANTIATE(FLOATS, batch_norm_backward_sums, Cpu)
TRIREME_INSTANTIATE(FLOATS, batch_norm_backward, Cpu)
TRIREME_INSTANTIATE(SINGLE_AND_DOUBLE, batch_norm_statistics, Cpu)
TRIREME_INSTANTIATE(SINGLE_AND_DOUBLE, batch_norm_running_statistics, Cpu)
TRIREME_INSTANTIATE(SINGLE_AND_DOUBLE, batch_norm_weight_gradient, Cpu)

}  // namespace trireme::ops
