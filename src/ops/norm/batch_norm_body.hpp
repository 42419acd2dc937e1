#pragma once

#include "ops/base/pack.hpp"
#include "ops/norm/counts.hpp"
#include "trireme/math/exponential.hpp"
#include "trireme/math/functors.hpp"

// The operations of ops/norm/batch_norm.hpp. Sums are in double; the order of additions depends on the sizes and the alignment
// alone.
namespace trireme::ops {

// The sums over rows of batch norm, for `Width` neighbouring channels.
template <int Width>
struct ChannelSums {
  double first[Width];
  double second[Width];
};

// Calls use(place, read(place)) for every `step`-th place of [place, end). Reads two places before it writes, so that reads do
// not wait for writes.
template <typename Read, typename Use>
TRIREME_TEAM void each_place(std::int64_t place, std::int64_t end, std::int64_t step, Read read, Use use) {
  for (; place + step < end; place += 2 * step) {
    const auto one = read(place);
    const auto other = read(place + step);
    use(place, one);
    use(place + step, other);
  }
  if (place < end) use(place, read(place));
}

// An element and its square.
template <int Width, typename T>
struct ChannelMoments {
  static constexpr int blocks_of_multiprocessor = 4;
  const T* x;

  // Sums over every `step`-th row of [row, end).
  TRIREME_TEAM ChannelSums<Width> operator()(std::int64_t row, std::int64_t end, std::int64_t step, std::int64_t channels,
                                             std::int64_t channel) const {
    ChannelSums<Width> sums{};
    each_place(
        row * channels + channel, end * channels, step * channels,
        [&](std::int64_t place) { return ops::read<Width>(x + place); },
        [&](std::int64_t, const Pack<T, Width>& values) {
          for (int k = 0; k < Width; ++k) {
            const auto value = static_cast<double>(widened(values.at[k]));
            sums.first[k] += value;
            sums.second[k] += value * value;
          }
        });
    return sums;
  }
};

// The normalisation of a channel. x - mean is x - center - remainder, exact even if the mean is large and has more digits than
// x.
template <typename T>
struct ChannelNormalization {
  const double* mean;
  const double* rstd;
  const Accumulate<T>* weight;  // may be null
  const Accumulate<T>* bias;    // may be null

  TRIREME_TEAM double scale(std::int64_t channel) const {
    return rstd[channel] * (weight == nullptr ? 1 : static_cast<double>(weight[channel]));
  }
  TRIREME_TEAM Accumulate<T> center(std::int64_t channel) const { return static_cast<Accumulate<T>>(mean[channel]); }
  TRIREME_TEAM double remainder(std::int64_t channel) const { return mean[channel] - static_cast<double>(center(channel)); }
};

// The coefficients of `Width` neighbouring channels: y = (x - center) * scale + shift.
template <int Width, typename T>
struct ChannelCoefficients {
  using A = Accumulate<T>;
  A center[Width];
  A scale[Width];
  A shift[Width];

  TRIREME_TEAM ChannelCoefficients(const ChannelNormalization<T>& norm, std::int64_t first) {
    for (int k = 0; k < Width; ++k) {
      const double bias = norm.bias == nullptr ? 0 : static_cast<double>(norm.bias[first + k]);
      center[k] = norm.center(first + k);
      scale[k] = static_cast<A>(norm.scale(first + k));
      shift[k] = static_cast<A>(bias - norm.remainder(first + k) * norm.scale(first + k));
    }
  }
};

// The input of both gradient passes.
template <typename T>
struct BatchNormGradients {
  ChannelNormalization<T> norm;
  const T* x;
  Counts counts;
  const T* y;  // for Counts::where_y
  const T* dy;
};

template <int Width, Counts counts, typename T>
struct GradientPacks {
  Pack<T, Width> x;
  Pack<T, Width> y;
  Pack<T, Width> dy;

  static TRIREME_TEAM GradientPacks read(const BatchNormGradients<T>& of, std::int64_t place) {
    GradientPacks packs{.x = ops::read<Width>(of.x + place), .y = {}, .dy = ops::read<Width>(of.dy + place)};
    if constexpr (counts == Counts::where_y) packs.y = ops::read<Width>(of.y + place);
    return packs;
  }

  TRIREME_TEAM Accumulate<T> difference(const ChannelCoefficients<Width, T>& channels, int k) const {
    return widened(x.at[k]) - channels.center[k];
  }
  // dy where it counts, else 0.
  TRIREME_TEAM Accumulate<T> gradient(const ChannelCoefficients<Width, T>& channels, int k) const {
    if constexpr (counts == Counts::everywhere) return widened(dy.at[k]);
    const Accumulate<T> result =
        counts == Counts::where_y ? widened(y.at[k]) : difference(channels, k) * channels.scale[k] + channels.shift[k];
    return result > 0 ? widened(dy.at[k]) : Accumulate<T>(0);
  }
};

template <typename T>
struct BatchNormSumPointers {
  BatchNormGradients<T> of;
  T* dresidual;  // becomes dy where it counts, else 0; may be null
};

// dy and dy * (x - mean) * rstd.
template <int Width, Counts counts, typename T>
struct ChannelGradientMoments {
  using Packs = GradientPacks<Width, counts, T>;
  static constexpr int blocks_of_multiprocessor = 2;
  BatchNormSumPointers<T> pass;

  TRIREME_TEAM ChannelSums<Width> operator()(std::int64_t row, std::int64_t end, std::int64_t step, std::int64_t channels,
                                             std::int64_t channel) const {
    const ChannelCoefficients<Width, T> coefficients(pass.of.norm, channel);
    ChannelSums<Width> sums{};
    each_place(
        row * channels + channel, end * channels, step * channels,
        [&](std::int64_t place) { return Packs::read(pass.of, place); },
        [&](std::int64_t place, const Packs& packs) {
          Pack<Accumulate<T>, Width> passed;
          for (int k = 0; k < Width; ++k) {
            passed.at[k] = packs.gradient(coefficients, k);
            const auto gradient = static_cast<double>(passed.at[k]);
            sums.first[k] += gradient;
            sums.second[k] += gradient * static_cast<double>(packs.difference(coefficients, k));
          }
          if (pass.dresidual != nullptr) store<Width>(pass.dresidual + place, passed);
        });
    for (int k = 0; k < Width; ++k) {
      sums.second[k] = pass.of.norm.rstd[channel + k] * (sums.second[k] - pass.of.norm.remainder(channel + k) * sums.first[k]);
    }
    return sums;
  }
};

// The rows are cut into parts, and a team sums each part: sums [parts, 2, channels]. The threads of a team form lanes, which
// take the rows of the part in turn; each thread of a lane has a pack of channels.
template <int Width, typename Terms>
struct SumChannelParts {
  Terms terms;
  std::int64_t rows;
  std::int64_t channels;
  std::int64_t parts;
  double* sums;

  static constexpr int scratch_of_thread = 2 * Width;  // doubles

  template <typename Team>
  TRIREME_TEAM void operator()(const Team& team, std::int64_t part, double* scratch) const {
    const std::int64_t packs = channels / Width;
    const std::int64_t threads = packs < team.size() ? packs : team.size();  // threads of a lane
    const std::int64_t lanes = team.size() / threads;
    for (std::int64_t first = 0; first < packs; first += threads) {
      const std::int64_t columns = (packs - first < threads ? packs - first : threads);
      add_lane(team, part, lanes, threads, first, columns, scratch);
      team.wait();
      add_lanes(team, part, lanes, threads, first, columns, scratch);
      team.wait();
    }
  }

 private:
  // scratch [lanes, 2 * Width, threads]
  template <typename Team>
  TRIREME_TEAM void add_lane(const Team& team, std::int64_t part, std::int64_t lanes, std::int64_t threads, std::int64_t first,
                             std::int64_t columns, double* scratch) const {
    const std::int64_t lane = team.rank() / threads;
    const std::int64_t column = team.rank() % threads;
    if (lane >= lanes || column >= columns) return;
    const ChannelSums<Width> of_lane =
        terms(rows * part / parts + lane, rows * (part + 1) / parts, lanes, channels, (first + column) * Width);
    double* to = scratch + lane * 2 * Width * threads + column;
    for (int k = 0; k < Width; ++k) {
      to[k * threads] = of_lane.first[k];
      to[(Width + k) * threads] = of_lane.second[k];
    }
  }

  template <typename Team>
  TRIREME_TEAM void add_lanes(const Team& team, std::int64_t part, std::int64_t lanes, std::int64_t threads, std::int64_t first,
                              std::int64_t columns, const double* scratch) const {
    for (std::int64_t i = team.rank(); i < 2 * Width * threads; i += team.size()) {
      const std::int64_t column = i % threads;
      if (column >= columns) continue;
      double sum = 0;
      for (std::int64_t lane = 0; lane < lanes; ++lane) sum += scratch[lane * 2 * Width * threads + i];
      const std::int64_t number = i / threads;  // index among the sums of a pack
      sums[(part * 2 + number / Width) * channels + (first + column) * Width + number % Width] = sum;
    }
  }
};

// By one team: mean and rstd of the whole batch, from the sums.
template <typename A>
struct BatchStatistics {
  const double* sums;
  std::int64_t channels;
  double rows;
  double epsilon;
  double momentum;
  A* running_mean;  // may be null
  A* running_var;   // may be null
  double* mean;
  double* rstd;

  template <typename Team>
  TRIREME_TEAM void operator()(const Team& team) const {
    bool finite = true;
    for (std::int64_t channel = team.rank(); channel < channels; channel += team.size()) {
      mean[channel] = sums[channel] / rows;
      rstd[channel] = 1 / math::square_root(variance(channel) + epsilon);
      finite = finite && math::is_finite(static_cast<A>(mean[channel])) && math::is_finite(static_cast<A>(unbiased(channel)));
    }
    if (team.max(finite ? 0.0F : 1.0F) != 0) return;
    for (std::int64_t channel = team.rank(); channel < channels; channel += team.size()) {
      if (running_mean != nullptr) follow(running_mean[channel], mean[channel]);
      if (running_var != nullptr) follow(running_var[channel], unbiased(channel));
    }
  }

 private:
  TRIREME_TEAM double variance(std::int64_t channel) const {
    const double difference = sums[channels + channel] / rows - mean[channel] * mean[channel];
    return difference < 0 ? 0 : difference;  // negative by rounding; NaN stays
  }
  TRIREME_TEAM double unbiased(std::int64_t channel) const { return variance(channel) * rows / (rows - 1); }
  TRIREME_TEAM void follow(A& average, double value) const {
    average = static_cast<A>((1 - momentum) * static_cast<double>(average) + momentum * value);
  }
};

// A thread for each channel.
template <typename A>
struct RunningStatisticsOfChannel {
  const A* running_mean;
  const A* running_var;
  double epsilon;
  double* mean;
  double* rstd;

  TRIREME_TEAM void operator()(std::int64_t channel) const {
    mean[channel] = static_cast<double>(running_mean[channel]);
    rstd[channel] = 1 / math::square_root(static_cast<double>(running_var[channel]) + epsilon);
  }
};

template <typename A>
struct RoundedSum {
  TRIREME_TEAM A operator()(std::int64_t, double sum) const { return static_cast<A>(sum); }
};

// A thread for each i in [0, strands * channels / Width). Each thread has a pack of channels, keeps their coefficients, and
// goes through every `strands`-th row.
struct ChannelStrands {
  std::int64_t rows;
  std::int64_t channels;
  std::int64_t strands;

  TRIREME_TEAM std::int64_t channel(std::int64_t i, int width) const { return i % (channels / width) * width; }

  // each_place for the first elements of the thread's packs.
  template <typename Read, typename Use>
  TRIREME_TEAM void each_pack(std::int64_t i, int width, Read read, Use use) const {
    each_place(i / (channels / width) * channels + channel(i, width), rows * channels, strands * channels, read, use);
  }
};

template <typename T>
struct BatchNormPointers {
  ChannelNormalization<T> norm;
  const T* x;
  const T* residual;  // may be null
  bool relu;
  T* y;
};

template <int Width, typename T>
struct NormalizeChannels {
  static constexpr int blocks_of_multiprocessor = 4;
  ChannelStrands strands;
  BatchNormPointers<T> pass;

  struct Packs {
    Pack<T, Width> x;
    Pack<T, Width> residual;
  };

  TRIREME_TEAM void operator()(std::int64_t i) const {
    const ChannelCoefficients<Width, T> channels(pass.norm, strands.channel(i, Width));
    strands.each_pack(
        i, Width,
        [&](std::int64_t place) {
          Packs packs{.x = ops::read<Width>(pass.x + place), .residual = {}};
          if (pass.residual != nullptr) packs.residual = ops::read<Width>(pass.residual + place);
          return packs;
        },
        [&](std::int64_t place, const Packs& packs) {
          Pack<Accumulate<T>, Width> values;
          for (int k = 0; k < Width; ++k) {
            values.at[k] = (widened(packs.x.at[k]) - channels.center[k]) * channels.scale[k] + channels.shift[k];
            if (pass.residual != nullptr) values.at[k] += widened(packs.residual.at[k]);
            if (pass.relu) values.at[k] = math::Relu::value(values.at[k]);
          }
          store<Width>(pass.y + place, values);
        });
  }
};

template <typename T>
struct BatchNormGradientPointers {
  BatchNormGradients<T> of;
  const double* sums;  // [2, channels], null in evaluation
  double rows;
  T* dx;
  bool accumulate_dx;
};

// With n = (x - mean) * rstd and g = dy * weight: dx = rstd * (g - average(g) - n * average(g * n)).
template <int Width, Counts counts, typename T>
struct ChannelGradient {
  static constexpr int blocks_of_multiprocessor = 3;
  using A = Accumulate<T>;
  using Packs = GradientPacks<Width, counts, T>;
  ChannelStrands strands;
  BatchNormGradientPointers<T> pass;

  TRIREME_TEAM void operator()(std::int64_t i) const {
    const std::int64_t first = strands.channel(i, Width);
    const ChannelCoefficients<Width, T> channels(pass.of.norm, first);
    A x_scale[Width];
    A shift[Width];
    const double share = pass.sums == nullptr ? 0 : 1 / pass.rows;
    for (int k = 0; k < Width; ++k) {
      const double scale = pass.of.norm.scale(first + k) * share;
      const double average_g = pass.sums == nullptr ? 0 : scale * pass.sums[first + k];
      const double average_gn = pass.sums == nullptr ? 0 : scale * pass.sums[strands.channels + first + k];
      const double slope = -pass.of.norm.rstd[first + k] * average_gn;
      x_scale[k] = static_cast<A>(slope);
      shift[k] = static_cast<A>(-average_g - slope * pass.of.norm.remainder(first + k));
    }
    strands.each_pack(
        i, Width, [&](std::int64_t place) { return Packs::read(pass.of, place); },
        [&](std::int64_t place, const Packs& packs) {
          Pack<A, Width> results{};
          if (pass.accumulate_dx) results = load<Width>(pass.dx + place);
          for (int k = 0; k < Width; ++k) {
            results.at[k] +=
                packs.gradient(channels, k) * channels.scale[k] + packs.difference(channels, k) * x_scale[k] + shift[k];
          }
          store<Width>(pass.dx + place, results);
        });
  }
};

}  // namespace trireme::ops
