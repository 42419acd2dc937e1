#pragma once

#include "ops/base/pack.hpp"
#include "trireme/math/exponential.hpp"
#include "trireme/math/functors.hpp"

// The operations of ops/batch_norm.hpp. Sums are in double; the order of additions follows from the sizes and the alignment.
namespace trireme::ops {

// Of `Width` neighbouring channels: what batch norm adds up over the rows.
template <int Width>
struct ChannelSums {
  double first[Width];
  double second[Width];
};

// An element and its square.
template <int Width, typename T>
struct ChannelMoments {
  const T* x;

  // Over every `step`-th of the rows from `row` on.
  TRIREME_TEAM ChannelSums<Width> operator()(std::int64_t row, std::int64_t end, std::int64_t step, std::int64_t channels,
                                             std::int64_t channel) const {
    ChannelSums<Width> sums{};
    for (; row < end; row += step) {
      const auto values = load<Width>(x + row * channels + channel);
      for (int k = 0; k < Width; ++k) {
        const auto value = static_cast<double>(values.at[k]);
        sums.first[k] += value;
        sums.second[k] += value * value;
      }
    }
    return sums;
  }
};

// dy, of which with ReLU only what passed it.
template <int Width, typename T>
TRIREME_TEAM Pack<Accumulate<T>, Width> passed_gradients(const T* y, const T* dy, std::int64_t place) {
  auto gradients = load<Width>(dy + place);
  if (y != nullptr) {
    const auto results = load<Width>(y + place);
    for (int k = 0; k < Width; ++k) gradients.at[k] = results.at[k] > 0 ? gradients.at[k] : 0;
  }
  return gradients;
}

template <typename T>
struct BatchNormSumPointers {
  const T* x;
  const T* y;  // null without ReLU
  const T* dy;
  const double* mean;
  const double* rstd;
};

// dy and dy * (x - mean) * rstd.
template <int Width, typename T>
struct ChannelGradientMoments {
  BatchNormSumPointers<T> pass;

  TRIREME_TEAM ChannelSums<Width> operator()(std::int64_t row, std::int64_t end, std::int64_t step, std::int64_t channels,
                                             std::int64_t channel) const {
    const auto means = load<Width>(pass.mean + channel);
    ChannelSums<Width> sums{};
    for (; row < end; row += step) {
      const std::int64_t place = row * channels + channel;
      const auto values = load<Width>(pass.x + place);
      const auto gradients = passed_gradients<Width>(pass.y, pass.dy, place);
      for (int k = 0; k < Width; ++k) {
        const auto gradient = static_cast<double>(gradients.at[k]);
        sums.first[k] += gradient;
        sums.second[k] += gradient * (static_cast<double>(values.at[k]) - means.at[k]);
      }
    }
    for (int k = 0; k < Width; ++k) sums.second[k] *= pass.rstd[channel + k];
    return sums;
  }
};

// The rows are cut into parts, each of which a team adds up on its own: sums [parts, 2, channels]. The threads stand in lanes,
// which take the part's rows in turn; a thread of a lane has a pack of channels.
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
    const std::int64_t threads = packs < team.size() ? packs : team.size();  // of a lane
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
      const std::int64_t number = i / threads;  // among the sums of a pack
      sums[(part * 2 + number / Width) * channels + (first + column) * Width + number % Width] = sum;
    }
  }
};

// Mean and rstd from the sums, for the whole batch by one team.
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
    return difference < 0 ? 0 : difference;  // rounding; NaN stays
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

// The normalisation of a channel. x - mean is x - center - remainder: exact also where the mean is large and has more digits
// than x.
template <typename T>
struct ChannelNormalization {
  const double* mean;
  const double* rstd;
  const Accumulate<T>* weight;  // may be null

  TRIREME_TEAM double scale(std::int64_t channel) const {
    return rstd[channel] * (weight == nullptr ? 1 : static_cast<double>(weight[channel]));
  }
  TRIREME_TEAM Accumulate<T> center(std::int64_t channel) const { return static_cast<Accumulate<T>>(mean[channel]); }
  TRIREME_TEAM double remainder(std::int64_t channel) const { return mean[channel] - static_cast<double>(center(channel)); }
};

// The rows that pass by threads of a pack of channels each, whose coefficients they keep: a thread for each i in
// [0, strands * channels / Width).
struct ChannelStrands {
  std::int64_t rows;
  std::int64_t channels;
  std::int64_t strands;

  TRIREME_TEAM std::int64_t channel(std::int64_t i, int width) const { return i % (channels / width) * width; }

  // Calls visit(place) for the first element of each of the thread's packs.
  template <typename Visit>
  TRIREME_TEAM void each_pack(std::int64_t i, int width, Visit visit) const {
    const std::int64_t first = channel(i, width);
    for (std::int64_t row = i / (channels / width); row < rows; row += strands) visit(row * channels + first);
  }
};

template <typename T>
struct BatchNormPointers {
  ChannelNormalization<T> norm;
  const Accumulate<T>* bias;  // may be null
  const T* x;
  const T* residual;  // may be null
  bool relu;
  T* y;
};

template <int Width, typename T>
struct NormalizeChannels {
  using A = Accumulate<T>;
  ChannelStrands strands;
  BatchNormPointers<T> pass;

  TRIREME_TEAM void operator()(std::int64_t i) const {
    const std::int64_t first = strands.channel(i, Width);
    A center[Width];
    A scale[Width];
    A shift[Width];
    for (int k = 0; k < Width; ++k) {
      const double bias = pass.bias == nullptr ? 0 : static_cast<double>(pass.bias[first + k]);
      center[k] = pass.norm.center(first + k);
      scale[k] = static_cast<A>(pass.norm.scale(first + k));
      shift[k] = static_cast<A>(bias - pass.norm.remainder(first + k) * pass.norm.scale(first + k));
    }
    strands.each_pack(i, Width, [&](std::int64_t place) {
      auto values = load<Width>(pass.x + place);
      for (int k = 0; k < Width; ++k) values.at[k] = (values.at[k] - center[k]) * scale[k] + shift[k];
      if (pass.residual != nullptr) {
        const auto addends = load<Width>(pass.residual + place);
        for (int k = 0; k < Width; ++k) values.at[k] += addends.at[k];
      }
      if (pass.relu) {
        for (int k = 0; k < Width; ++k) values.at[k] = math::Relu::value(values.at[k]);
      }
      store<Width>(pass.y + place, values);
    });
  }
};

template <typename T>
struct BatchNormGradientPointers {
  ChannelNormalization<T> norm;
  const T* x;
  const T* y;  // null without ReLU
  const T* dy;
  const double* sums;  // [2, channels], null in evaluation
  double rows;
  T* dx;
  bool accumulate_dx;
  T* dresidual;  // may be null
};

// With n = (x - mean) * rstd and g = dy * weight: dx = rstd * (g - average(g) - n * average(g * n)).
template <int Width, typename T>
struct ChannelGradient {
  using A = Accumulate<T>;
  ChannelStrands strands;
  BatchNormGradientPointers<T> pass;

  TRIREME_TEAM void operator()(std::int64_t i) const {
    const std::int64_t first = strands.channel(i, Width);
    A center[Width];
    A dy_scale[Width];
    A x_scale[Width];
    A shift[Width];
    for (int k = 0; k < Width; ++k) {
      const double slope = -pass.norm.rstd[first + k] * scaled_average(strands.channels + first + k, first + k);
      center[k] = pass.norm.center(first + k);
      dy_scale[k] = static_cast<A>(pass.norm.scale(first + k));
      x_scale[k] = static_cast<A>(slope);
      shift[k] = static_cast<A>(-scaled_average(first + k, first + k) - slope * pass.norm.remainder(first + k));
    }
    strands.each_pack(i, Width, [&](std::int64_t place) {
      const auto values = load<Width>(pass.x + place);
      const auto gradients = passed_gradients<Width>(pass.y, pass.dy, place);
      if (pass.dresidual != nullptr) store<Width>(pass.dresidual + place, gradients);
      Pack<A, Width> results{};
      if (pass.accumulate_dx) results = load<Width>(pass.dx + place);
      for (int k = 0; k < Width; ++k) {
        results.at[k] += gradients.at[k] * dy_scale[k] + (values.at[k] - center[k]) * x_scale[k] + shift[k];
      }
      store<Width>(pass.dx + place, results);
    });
  }

 private:
  // rstd * weight * average.
  TRIREME_TEAM double scaled_average(std::int64_t index, std::int64_t channel) const {
    return pass.sums == nullptr ? 0 : pass.norm.scale(channel) * (pass.sums[index] / pass.rows);
  }
};

}  // namespace trireme::ops
