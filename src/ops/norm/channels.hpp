#pragma once

#include <cstdint>
#include <span>

#include "trireme/core/dtype.hpp"

// Rows of channels with one normalisation for each channel. Batch norm is that for the whole batch, group norm for each sample.
namespace trireme::ops {

template <typename T>
struct ChannelRows {
  const T* x;
  std::int64_t rows;
  std::int64_t channels;
};

// Arrays by channel; weight and bias may be null.
template <typename T>
struct ChannelNorm {
  const double* mean;
  const double* rstd;
  const Accumulate<T>* weight;
  const Accumulate<T>* bias;

  double weight_or_one(std::int64_t channel) const { return weight != nullptr ? static_cast<double>(weight[channel]) : 1; }
};

// sums [2 * channels]: of the elements, then of their squares. The same bits for any number of threads.
template <typename T>
void sum_channels(const ChannelRows<T>& in, double* sums);

// y = (x - mean) * rstd * weight + bias, + residual, ReLU. `residual` may be null.
template <typename T>
void normalize_channels(const ChannelRows<T>& in, const ChannelNorm<T>& norm, const T* residual, bool relu, T* y);

// With ReLU, dy counts where y is above 0; if y is null, where the normalised x is above 0.
template <typename T>
struct PassedGradients {
  const T* dy;
  bool relu = false;
  const T* y = nullptr;
};

// With n = (x - mean) * rstd: sums [2 * channels] of dy and of dy * n. dresidual, which may be null, becomes dy where it
// counts, else 0.
template <typename T>
void sum_channel_gradients(const ChannelRows<T>& in, const ChannelNorm<T>& norm, const PassedGradients<T>& of, T* dresidual,
                           double* sums);

// dx = rstd * (dy * weight - average_g - n * average_gn); the averages are by channel.
template <typename T>
struct ChannelGradients {
  PassedGradients<T> of;
  const double* average_g;
  const double* average_gn;
  T* dx;
  bool accumulate_dx;
};
template <typename T>
void channel_gradients(const ChannelRows<T>& in, const ChannelNorm<T>& norm, const ChannelGradients<T>& pass);

}  // namespace trireme::ops
