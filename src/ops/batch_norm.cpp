#include "trireme/ops/batch_norm.hpp"

#include <vector>

#include "ops/channels.hpp"
#include "ops/check.hpp"
#include "trireme/core/bfloat16.hpp"
#include "trireme/core/float16.hpp"

namespace trireme::ops {
namespace {

template <typename T>
ChannelRows<T> rows_of(std::string_view op, const Tensor<T, Cpu>& x) {
  require(x.shape().size() > 0 && x.shape().back() > 0, "{}: x has shape {}; the last dim, the channels, must not be empty", op,
          x.shape());
  return {.x = x.data(), .rows = x.shape().rows(), .channels = x.shape().back()};
}

// What forward and backward pass share.
template <typename T, typename Pass>
ChannelNorm<T> norm_of(std::string_view op, const Pass& pass) {
  const std::int64_t channels = pass.x.shape().back();
  require_count(op, "mean", pass.mean.shape(), channels);
  require_count(op, "rstd", pass.rstd.shape(), channels);
  if (pass.weight.defined()) require_count(op, "weight", pass.weight.shape(), channels);
  if (pass.y.defined()) require_shape(op, "y", pass.y.shape(), pass.x.shape());
  return {.mean = pass.mean.data(), .rstd = pass.rstd.data(), .weight = pass.weight.data(), .bias = nullptr};
}

void require_sums(std::string_view op, std::size_t size, std::int64_t channels) {
  require(size == static_cast<std::size_t>(2 * channels), "{}: there are {} sums, but {} channels need two each", op, size,
          channels);
}

}  // namespace

template <typename T, typename D>
void batch_norm_sums(const Tensor<T, D>& x, std::span<double> sums) {
  const auto rows = rows_of("batch_norm_sums", x);
  require_sums("batch_norm_sums", sums.size(), rows.channels);
  sum_channels(rows, sums.data());
}

template <typename T, typename D>
void batch_norm(const BatchNormForward<T, D>& pass) {
  const auto rows = rows_of("batch_norm", pass.x);
  auto norm = norm_of<T>("batch_norm", pass);
  require_shape("batch_norm", "y", pass.y.shape(), pass.x.shape());
  if (pass.bias.defined()) require_count("batch_norm", "bias", pass.bias.shape(), rows.channels);
  if (pass.residual.defined()) require_shape("batch_norm", "residual", pass.residual.shape(), pass.x.shape());
  norm.bias = pass.bias.data();
  normalize_channels(rows, norm, pass.residual.data(), pass.relu, pass.y.data());
}

template <typename T, typename D>
void batch_norm_backward_sums(const BatchNormBackward<T, D>& pass, std::span<double> sums) {
  const auto rows = rows_of("batch_norm_backward_sums", pass.x);
  const auto norm = norm_of<T>("batch_norm_backward_sums", pass);
  require_shape("batch_norm_backward_sums", "dy", pass.dy.shape(), pass.x.shape());
  require_sums("batch_norm_backward_sums", sums.size(), rows.channels);
  sum_channel_gradients(rows, norm, pass.y.data(), pass.dy.data(), sums.data());
}

template <typename T, typename D>
void batch_norm_backward(const BatchNormBackward<T, D>& pass, std::span<const double> averages, Tensor<T, D>& dx,
                         bool accumulate_dx, const Tensor<T, D>& dresidual) {
  const auto rows = rows_of("batch_norm_backward", pass.x);
  const auto norm = norm_of<T>("batch_norm_backward", pass);
  require_shape("batch_norm_backward", "dy", pass.dy.shape(), pass.x.shape());
  require_shape("batch_norm_backward", "dx", dx.shape(), pass.x.shape());
  if (dresidual.defined()) require_shape("batch_norm_backward", "dresidual", dresidual.shape(), pass.x.shape());
  const auto channels = static_cast<std::size_t>(rows.channels);
  std::vector<double> weighted(2 * channels, 0.0);
  if (!averages.empty()) {
    require_sums("batch_norm_backward", averages.size(), rows.channels);
    for (std::size_t index = 0; index < 2 * channels; ++index) {
      weighted[index] = norm.weight_or_one(static_cast<std::int64_t>(index % channels)) * averages[index];
    }
  }
  channel_gradients<T>(rows, norm,
                       {.y = pass.y.data(),
                        .dy = pass.dy.data(),
                        .average_g = weighted.data(),
                        .average_gn = weighted.data() + channels,
                        .dx = dx.data(),
                        .accumulate_dx = accumulate_dx,
                        .dresidual = dresidual.data()});
}

#define TRIREME_INSTANTIATE(T)                                                                                        \
  template void batch_norm_sums(const Tensor<T, Cpu>&, std::span<double>);                                            \
  template void batch_norm(const BatchNormForward<T, Cpu>&);                                                          \
  template void batch_norm_backward_sums(const BatchNormBackward<T, Cpu>&, std::span<double>);                        \
  template void batch_norm_backward(const BatchNormBackward<T, Cpu>&, std::span<const double>, Tensor<T, Cpu>&, bool, \
                                    const Tensor<T, Cpu>&);
TRIREME_INSTANTIATE(float)
TRIREME_INSTANTIATE(double)
TRIREME_INSTANTIATE(bfloat16)
TRIREME_INSTANTIATE(float16)
#undef TRIREME_INSTANTIATE

}  // namespace trireme::ops
