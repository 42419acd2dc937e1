#pragma once

#include "ops/base/pack.hpp"
#include "ops/norm/group_norm_sizes.hpp"
#include "trireme/math/exponential.hpp"

// The operations of ops/norm/group_norm.hpp, in double.
namespace trireme::ops {

// weight and bias may be null.
template <typename T>
struct GroupNormInput {
  GroupNormSizes sizes;
  const T* x;
  const Accumulate<T>* weight;
  const Accumulate<T>* bias;

  TRIREME_TEAM std::int64_t group_channels() const { return sizes.channels / sizes.groups; }
  TRIREME_TEAM double share() const { return sizes.rows == 0 ? 0 : 1 / static_cast<double>(sizes.rows * group_channels()); }
  TRIREME_TEAM double weight_or_one(std::int64_t channel) const {
    return weight == nullptr ? 1 : static_cast<double>(weight[channel]);
  }

  // Calls visit(place, channel) for the thread's share of group number `index` of [batch, groups].
  template <typename Team, typename Visit>
  TRIREME_TEAM void each_element(const Team& team, std::int64_t index, Visit visit) const {
    const std::int64_t width = group_channels();
    const std::int64_t first_channel = index % sizes.groups * width;
    const std::int64_t first_row = index / sizes.groups * sizes.rows;
    for (std::int64_t i = team.rank(); i < sizes.rows * width; i += team.size()) {
      const std::int64_t channel = first_channel + i % width;
      visit((first_row + i / width) * sizes.channels + channel, channel);
    }
  }
};

// A team for each group of each sample: computes the mean first, then the squares of the differences from it.
template <typename T>
struct NormalizeGroup {
  GroupNormInput<T> in;
  double epsilon;
  T* y;
  double* means;
  double* rstds;

  template <typename Team>
  TRIREME_TEAM void operator()(const Team& team, std::int64_t index) const {
    double total = 0;
    in.each_element(team, index, [&](std::int64_t place, std::int64_t) { total += static_cast<double>(widened(in.x[place])); });
    const double mean = team.sum(total) * in.share();
    double squares = 0;
    in.each_element(team, index, [&](std::int64_t place, std::int64_t) {
      const double difference = static_cast<double>(widened(in.x[place])) - mean;
      squares += difference * difference;
    });
    const double rstd = 1 / math::square_root(team.sum(squares) * in.share() + epsilon);
    if (team.rank() == 0) {
      means[index] = mean;
      rstds[index] = rstd;
    }
    in.each_element(team, index, [&](std::int64_t place, std::int64_t channel) {
      const double n = (static_cast<double>(widened(in.x[place])) - mean) * rstd;
      const double bias = in.bias == nullptr ? 0 : static_cast<double>(in.bias[channel]);
      y[place] = rounded<T>(static_cast<Accumulate<T>>(n * in.weight_or_one(channel) + bias));
    });
  }
};

// With n = (x - mean) * rstd and g = dy * weight: dx = rstd * (g - average(g) - n * average(g * n)).
template <typename T>
struct GroupNormGradient {
  GroupNormInput<T> in;
  const double* means;
  const double* rstds;
  const T* dy;
  T* dx;
  bool accumulate_dx;

  template <typename Team>
  TRIREME_TEAM void operator()(const Team& team, std::int64_t index) const {
    const double mean = means[index];
    const double rstd = rstds[index];
    double sum_g = 0;
    double sum_gn = 0;
    in.each_element(team, index, [&](std::int64_t place, std::int64_t channel) {
      const double g = static_cast<double>(widened(dy[place])) * in.weight_or_one(channel);
      sum_g += g;
      sum_gn += g * (static_cast<double>(widened(in.x[place])) - mean) * rstd;
    });
    const double average_g = team.sum(sum_g) * in.share();
    const double average_gn = team.sum(sum_gn) * in.share();
    in.each_element(team, index, [&](std::int64_t place, std::int64_t channel) {
      const double g = static_cast<double>(widened(dy[place])) * in.weight_or_one(channel);
      const double n = (static_cast<double>(widened(in.x[place])) - mean) * rstd;
      const double before = accumulate_dx ? static_cast<double>(widened(dx[place])) : 0;
      dx[place] = rounded<T>(static_cast<Accumulate<T>>(before + rstd * (g - average_g - n * average_gn)));
    });
  }
};

// dweights and dbiases [parts, channels] over equal parts of all samples' rows: a thread for each i in [0, parts * channels).
template <typename T>
struct GroupNormWeightGradient {
  GroupNormInput<T> in;
  const double* means;
  const double* rstds;
  const T* dy;
  std::int64_t parts;
  Accumulate<T>* dweights;
  Accumulate<T>* dbiases;

  TRIREME_TEAM void operator()(std::int64_t i) const {
    const std::int64_t part = i / in.sizes.channels;
    const std::int64_t channel = i % in.sizes.channels;
    const std::int64_t rows = in.sizes.batch * in.sizes.rows;
    double dweight = 0;
    double dbias = 0;
    for (std::int64_t row = rows * part / parts; row < rows * (part + 1) / parts; ++row) {
      const std::int64_t group = row / in.sizes.rows * in.sizes.groups + channel / in.group_channels();
      const std::int64_t place = row * in.sizes.channels + channel;
      const auto gradient = static_cast<double>(widened(dy[place]));
      dweight += gradient * (static_cast<double>(widened(in.x[place])) - means[group]) * rstds[group];
      dbias += gradient;
    }
    dweights[i] = static_cast<Accumulate<T>>(dweight);
    dbiases[i] = static_cast<Accumulate<T>>(dbias);
  }
};

}  // namespace trireme::ops
