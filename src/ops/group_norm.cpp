#include "trireme/ops/group_norm.hpp"

#include <cmath>
#include <vector>

#include "ops/channels.hpp"
#include "ops/check.hpp"
#include "ops/parallel.hpp"
#include "trireme/core/bfloat16.hpp"
#include "trireme/core/float16.hpp"

namespace trireme::ops {
namespace {

struct Sizes {
  std::int64_t batch;
  std::int64_t rows;  // of a sample
  std::int64_t channels;
  std::int64_t groups;

  std::int64_t group_channels() const { return channels / groups; }
  double group_elements() const { return static_cast<double>(rows * group_channels()); }
};

template <typename Pass>
Sizes checked_sizes(std::string_view op, const Pass& pass) {
  const Shape& shape = pass.x.shape();
  require(shape.size() >= 2 && pass.groups > 0 && shape.back() > 0 && shape.back() % pass.groups == 0,
          "{}: x {} is not [batch, ..., channels] with channels that {} groups divide", op, shape, pass.groups);
  const std::int64_t batch = shape[0];
  const Sizes sizes{batch, batch == 0 ? 0 : shape.rows() / batch, shape.back(), pass.groups};
  require_count(op, "mean", pass.mean.shape(), batch * sizes.groups);
  require_count(op, "rstd", pass.rstd.shape(), batch * sizes.groups);
  if (pass.weight.defined()) require_count(op, "weight", pass.weight.shape(), sizes.channels);
  return sizes;
}

template <typename Body>
void parallel_samples(const Sizes& sizes, const Body& body) {
  parallel_rows(sizes.batch, sizes.rows * sizes.channels, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t sample = begin; sample < end; ++sample) body(sample);
  });
}

// The sum of value(channel) over the channels of a group.
template <typename Value>
double sum_of_group(const Sizes& sizes, std::int64_t group, const Value& value) {
  double sum = 0;
  for (std::int64_t index = 0; index < sizes.group_channels(); ++index) sum += value(group * sizes.group_channels() + index);
  return sum;
}

// A group's numbers, by channel.
std::vector<double> by_channel(const Sizes& sizes, const double* of_groups) {
  std::vector<double> values;
  for (std::int64_t group = 0; group < sizes.groups; ++group) {
    values.insert(values.end(), static_cast<std::size_t>(sizes.group_channels()), of_groups[group]);
  }
  return values;
}

}  // namespace

template <typename T, typename D>
void group_norm(const GroupNormForward<T, D>& pass) {
  const Sizes sizes = checked_sizes("group_norm", pass);
  require_shape("group_norm", "y", pass.y.shape(), pass.x.shape());
  if (pass.bias.defined()) require_count("group_norm", "bias", pass.bias.shape(), sizes.channels);
  parallel_samples(sizes, [&](std::int64_t sample) {
    const std::int64_t place = sample * sizes.rows * sizes.channels;
    const ChannelRows<T> rows{pass.x.data() + place, sizes.rows, sizes.channels};
    std::vector<double> sums(static_cast<std::size_t>(2 * sizes.channels));
    sum_channels(rows, sums.data());
    double* means = pass.mean.data() + sample * sizes.groups;
    double* rstds = pass.rstd.data() + sample * sizes.groups;
    for (std::int64_t group = 0; group < sizes.groups; ++group) {
      const auto average = [&](const double* of) {
        return sum_of_group(sizes, group, [of](std::int64_t channel) { return of[channel]; }) / sizes.group_elements();
      };
      means[group] = average(sums.data());
      const double difference = average(sums.data() + sizes.channels) - means[group] * means[group];
      const double variance = difference < 0 ? 0 : difference;  // rounding; NaN stays
      rstds[group] = 1 / std::sqrt(variance + pass.epsilon);
    }
    const auto mean = by_channel(sizes, means);
    const auto rstd = by_channel(sizes, rstds);
    normalize_channels<T>(rows, {mean.data(), rstd.data(), pass.weight.data(), pass.bias.data()}, nullptr, false,
                          pass.y.data() + place);
  });
}

template <typename T, typename D>
void group_norm_backward(const GroupNormBackward<T, D>& pass) {
  const Sizes sizes = checked_sizes("group_norm_backward", pass);
  require_shape("group_norm_backward", "dy", pass.dy.shape(), pass.x.shape());
  require_shape("group_norm_backward", "dx", pass.dx.shape(), pass.x.shape());
  const auto sums = Tensor<double, D>({sizes.batch, 2, sizes.channels});  // of dy and of dy * n, by sample
  parallel_samples(sizes, [&](std::int64_t sample) {
    const std::int64_t place = sample * sizes.rows * sizes.channels;
    const ChannelRows<T> rows{pass.x.data() + place, sizes.rows, sizes.channels};
    const auto mean = by_channel(sizes, pass.mean.data() + sample * sizes.groups);
    const auto rstd = by_channel(sizes, pass.rstd.data() + sample * sizes.groups);
    const ChannelNorm<T> norm{mean.data(), rstd.data(), pass.weight.data(), nullptr};
    double* of_dy = sums.data() + sample * 2 * sizes.channels;
    const double* of_dyn = of_dy + sizes.channels;
    sum_channel_gradients<T>(rows, norm, nullptr, pass.dy.data() + place, of_dy);
    const auto averages = [&](const double* of) {
      std::vector<double> of_groups;
      for (std::int64_t group = 0; group < sizes.groups; ++group) {
        const auto weighted = [&](std::int64_t channel) { return of[channel] * norm.weight_or_one(channel); };
        of_groups.push_back(sum_of_group(sizes, group, weighted) / sizes.group_elements());
      }
      return by_channel(sizes, of_groups.data());
    };
    const auto average_g = averages(of_dy);
    const auto average_gn = averages(of_dyn);
    channel_gradients<T>(rows, norm,
                         {.y = nullptr,
                          .dy = pass.dy.data() + place,
                          .average_g = average_g.data(),
                          .average_gn = average_gn.data(),
                          .dx = pass.dx.data() + place,
                          .accumulate_dx = pass.accumulate_dx,
                          .dresidual = nullptr});
  });
  const auto write = [&](const Tensor<Accumulate<T>, D>& gradient, bool accumulate, std::int64_t kind) {
    if (!gradient.defined()) return;
    require_count("group_norm_backward", "a gradient of weight or bias", gradient.shape(), sizes.channels);
    for (std::int64_t channel = 0; channel < sizes.channels; ++channel) {
      double sum = accumulate ? static_cast<double>(gradient.data()[channel]) : 0;
      for (std::int64_t sample = 0; sample < sizes.batch; ++sample) {
        sum += sums.data()[(sample * 2 + kind) * sizes.channels + channel];
      }
      gradient.data()[channel] = static_cast<Accumulate<T>>(sum);
    }
  };
  write(pass.dbias, pass.accumulate_dbias, 0);
  write(pass.dweight, pass.accumulate_dweight, 1);
}

#define TRIREME_INSTANTIATE(T)                               \
  template void group_norm(const GroupNormForward<T, Cpu>&); \
  template void group_norm_backward(const GroupNormBackward<T, Cpu>&);
TRIREME_INSTANTIATE(float)
TRIREME_INSTANTIATE(double)
TRIREME_INSTANTIATE(bfloat16)
TRIREME_INSTANTIATE(float16)
#undef TRIREME_INSTANTIATE

}  // namespace trireme::ops
