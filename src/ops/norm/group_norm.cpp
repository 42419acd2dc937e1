#include <cmath>
#include <vector>

#include "ops/base/parallel.hpp"
#include "ops/norm/channels.hpp"
#include "ops/norm/group_norm_on.hpp"
#include "precision/instantiate.hpp"

namespace trireme::ops {
namespace {

std::int64_t group_channels(const GroupNormSizes& sizes) { return sizes.channels / sizes.groups; }
double group_elements(const GroupNormSizes& sizes) { return static_cast<double>(sizes.rows * group_channels(sizes)); }

template <typename Body>
void parallel_samples(const GroupNormSizes& sizes, const Body& body) {
  parallel_rows(sizes.batch, sizes.rows * sizes.channels, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t sample = begin; sample < end; ++sample) body(sample);
  });
}

template <typename Value>
double sum_of_group(const GroupNormSizes& sizes, std::int64_t group, const Value& value) {
  double sum = 0;
  for (std::int64_t index = 0; index < group_channels(sizes); ++index) sum += value(group * group_channels(sizes) + index);
  return sum;
}

// Repeats the number of each group for all its channels.
std::vector<double> by_channel(const GroupNormSizes& sizes, const double* of_groups) {
  std::vector<double> values;
  for (std::int64_t group = 0; group < sizes.groups; ++group) {
    values.insert(values.end(), static_cast<std::size_t>(group_channels(sizes)), of_groups[group]);
  }
  return values;
}

}  // namespace

template <>
template <typename T>
void GroupNorm<Cpu>::forward(const GroupNormSizes& sizes, const GroupNormForward<T, Cpu>& pass) {
  parallel_samples(sizes, [&](std::int64_t sample) {
    const std::int64_t place = sample * sizes.rows * sizes.channels;
    const ChannelRows<T> rows{pass.x.data() + place, sizes.rows, sizes.channels};
    std::vector<double> sums(static_cast<std::size_t>(2 * sizes.channels));
    sum_channels(rows, sums.data());
    double* means = pass.mean.data() + sample * sizes.groups;
    double* rstds = pass.rstd.data() + sample * sizes.groups;
    for (std::int64_t group = 0; group < sizes.groups; ++group) {
      const auto average = [&](const double* of) {
        const double sum = sum_of_group(sizes, group, [of](std::int64_t channel) { return of[channel]; });
        return sizes.rows == 0 ? 0 : sum / group_elements(sizes);
      };
      means[group] = average(sums.data());
      const double difference = average(sums.data() + sizes.channels) - means[group] * means[group];
      const double variance = difference < 0 ? 0 : difference;  // negative by rounding; NaN stays
      rstds[group] = 1 / std::sqrt(variance + pass.epsilon);
    }
    const auto mean = by_channel(sizes, means);
    const auto rstd = by_channel(sizes, rstds);
    normalize_channels<T>(rows, {mean.data(), rstd.data(), pass.weight.data(), pass.bias.data()}, nullptr, false,
                          pass.y.data() + place);
  });
}

template <>
template <typename T>
void GroupNorm<Cpu>::backward(const GroupNormSizes& sizes, const GroupNormBackward<T, Cpu>& pass) {
  const auto sums = Tensor<double, Cpu>({sizes.batch, 2, sizes.channels});  // of dy and of dy * n, by sample
  parallel_samples(sizes, [&](std::int64_t sample) {
    const std::int64_t place = sample * sizes.rows * sizes.channels;
    const ChannelRows<T> rows{pass.x.data() + place, sizes.rows, sizes.channels};
    const auto mean = by_channel(sizes, pass.mean.data() + sample * sizes.groups);
    const auto rstd = by_channel(sizes, pass.rstd.data() + sample * sizes.groups);
    const ChannelNorm<T> norm{mean.data(), rstd.data(), pass.weight.data(), nullptr};
    double* of_dy = sums.data() + sample * 2 * sizes.channels;
    const double* of_dyn = of_dy + sizes.channels;
    const PassedGradients<T> gradients{.dy = pass.dy.data() + place};
    sum_channel_gradients<T>(rows, norm, gradients, nullptr, of_dy);
    const auto averages = [&](const double* of) {
      std::vector<double> of_groups;
      for (std::int64_t group = 0; group < sizes.groups; ++group) {
        const auto weighted = [&](std::int64_t channel) { return of[channel] * norm.weight_or_one(channel); };
        of_groups.push_back(sum_of_group(sizes, group, weighted) / group_elements(sizes));
      }
      return by_channel(sizes, of_groups.data());
    };
    const auto average_g = averages(of_dy);
    const auto average_gn = averages(of_dyn);
    channel_gradients<T>(rows, norm,
                         {.of = gradients,
                          .average_g = average_g.data(),
                          .average_gn = average_gn.data(),
                          .dx = pass.dx.data() + place,
                          .accumulate_dx = pass.accumulate_dx});
  });
  const auto write = [&](const Tensor<Accumulate<T>, Cpu>& gradient, bool accumulate, std::int64_t kind) {
    if (!gradient.defined()) return;
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

TRIREME_INSTANTIATE(FLOATS, group_norm, Cpu)
TRIREME_INSTANTIATE(FLOATS, group_norm_backward, Cpu)

}  // namespace trireme::ops
