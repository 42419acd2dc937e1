#include "ops/norm/channels.hpp"

#include <algorithm>

#include "ops/base/row_parts.hpp"
#include "ops/elementwise/floats.hpp"
#include "ops/norm/channels_kernels.hpp"
#include "precision/instantiate.hpp"

namespace trireme::ops {
namespace {

// Rows of few channels are joined into lines of several rows, which are long enough for vectors and a whole number of vectors.
struct Lines {
  std::int64_t count;  // of elements
  std::int64_t channels;
  std::int64_t width;

  template <typename T>
  explicit Lines(const ChannelRows<T>& in) : count(in.rows * in.channels), channels(in.channels), width(in.channels) {
    while (width < 64 || (width % 16 != 0 && width < 1024)) width *= 2;
  }
  std::int64_t number() const { return (count + width - 1) / width; }
  std::int64_t piece() const { return std::max<std::int64_t>(4, 2048 / width) * width; }  // for half types: fits the caches

  // A line with value(channel) in each column.
  template <typename A, typename Value>
  Tensor<A> columns(const Value& value) const {
    Tensor<A> result({width});
    for (std::int64_t channel = 0; channel < channels; ++channel) result.data()[channel] = static_cast<A>(value(channel));
    for (std::int64_t j = channels; j < width; ++j) result.data()[j] = result.data()[j - channels];
    return result;
  }
};

// Memory for the floats of a piece, reused by all pieces.
template <typename T>
struct PieceRows {
  FloatRow<T> x, y, dy, dx, residual;

  explicit PieceRows(std::int64_t piece) : x(piece), y(piece), dy(piece), dx(piece), residual(piece) {}
};

// Calls body(rows, first, elements) for the lines [begin, end): at once, or for half types in pieces of whole lines.
template <typename T, typename Body>
void for_line_pieces(const Lines& lines, std::int64_t begin, std::int64_t end, const Body& body) {
  const std::int64_t first = begin * lines.width;
  const std::int64_t last = std::min(end * lines.width, lines.count);
  const std::int64_t piece = is_half<T> ? lines.piece() : last - first;
  PieceRows<T> rows(piece);
  for (std::int64_t at = first; at < last; at += piece) body(rows, at, std::min(piece, last - at));
}

template <typename T, typename Body>
void parallel_lines(const Lines& lines, const Body& body) {
  parallel_rows(lines.number(), lines.width,
                [&](std::int64_t begin, std::int64_t end) { for_line_pieces<T>(lines, begin, end, body); });
}

// Calls body(rows, first, elements, sums of columns) for each part of the lines, and adds the sums in the order of the parts.
template <typename T, typename Body>
void sum_columns(const Lines& lines, double* sums, const Body& body) {
  const std::int64_t parts = num_row_parts(lines.number());
  const auto partial = Tensor<double>::zeros({parts, 2, lines.width});
  parallel_row_parts(lines.number(), lines.width, [&](std::int64_t part, std::int64_t begin, std::int64_t end) {
    double* own = partial.data() + part * 2 * lines.width;
    for_line_pieces<T>(lines, begin, end,
                       [&](PieceRows<T>& rows, std::int64_t first, std::int64_t count) { body(rows, first, count, own); });
  });
  std::fill_n(sums, 2 * lines.channels, 0.0);
  for (std::int64_t row = 0; row < 2 * parts; ++row) {
    double* of_kind = sums + row % 2 * lines.channels;
    const double* columns = partial.data() + row * lines.width;
    for (const double* end = columns + lines.width; columns < end; columns += lines.channels) {
      for (std::int64_t channel = 0; channel < lines.channels; ++channel) of_kind[channel] += columns[channel];
    }
  }
}

// x - mean is x - center - remainder(mean), exact even if the mean is large and has more digits than x.
template <typename A>
double remainder(double mean) {
  return mean - static_cast<double>(static_cast<A>(mean));
}

template <typename T>
const Accumulate<T>* read_or_null(FloatRow<T>& row, const T* data, std::int64_t first, std::int64_t count) {
  return data == nullptr ? nullptr : row.read(data + first, count);
}

// The coefficients of each column: y = (x - center) * scale + shift.
template <typename A>
struct NormColumns {
  Tensor<A> center;
  Tensor<A> scale;
  Tensor<A> shift;

  template <typename T>
  NormColumns(const Lines& lines, const ChannelNorm<T>& norm) {
    const auto scale_of = [&](std::int64_t channel) { return norm.rstd[channel] * norm.weight_or_one(channel); };
    center = lines.columns<A>([&](std::int64_t channel) { return norm.mean[channel]; });
    scale = lines.columns<A>(scale_of);
    shift = lines.columns<A>([&](std::int64_t channel) {
      const double bias = norm.bias != nullptr ? static_cast<double>(norm.bias[channel]) : 0;
      return bias - remainder<A>(norm.mean[channel]) * scale_of(channel);
    });
  }

  template <typename T>
  PassedLines<A> passed(PieceRows<T>& rows, const ChannelRows<T>& in, const PassedGradients<T>& of, std::int64_t first,
                        std::int64_t count) const {
    return {.x = rows.x.read(in.x + first, count),
            .dy = rows.dy.read(of.dy + first, count),
            .relu = of.relu,
            .y = read_or_null(rows.y, of.y, first, count),
            .center = center.data(),
            .scale = scale.data(),
            .shift = shift.data()};
  }
};

}  // namespace

template <typename T>
void sum_channels(const ChannelRows<T>& in, double* sums) {
  const Lines lines(in);
  const auto& kernels = channel_kernels().of<Accumulate<T>>();
  sum_columns<T>(lines, sums, [&](PieceRows<T>& rows, std::int64_t first, std::int64_t count, double* columns) {
    kernels.add_moments(rows.x.read(in.x + first, count), count, lines.width, columns);
  });
}

template <typename T>
void normalize_channels(const ChannelRows<T>& in, const ChannelNorm<T>& norm, const T* residual, bool relu, T* y) {
  using A = Accumulate<T>;
  const Lines lines(in);
  const NormColumns<A> columns(lines, norm);
  const auto& kernels = channel_kernels().of<A>();
  parallel_lines<T>(lines, [&](PieceRows<T>& rows, std::int64_t first, std::int64_t count) {
    kernels.normalize({.x = rows.x.read(in.x + first, count),
                       .center = columns.center.data(),
                       .scale = columns.scale.data(),
                       .shift = columns.shift.data(),
                       .residual = read_or_null(rows.residual, residual, first, count),
                       .relu = relu,
                       .y = rows.y.place(y + first)},
                      count, lines.width);
    rows.y.write(y + first, count);
  });
}

template <typename T>
void sum_channel_gradients(const ChannelRows<T>& in, const ChannelNorm<T>& norm, const PassedGradients<T>& of, T* dresidual,
                           double* sums) {
  using A = Accumulate<T>;
  const Lines lines(in);
  const NormColumns<A> columns(lines, norm);
  const auto& kernels = channel_kernels().of<A>();
  sum_columns<T>(lines, sums, [&](PieceRows<T>& rows, std::int64_t first, std::int64_t count, double* of_columns) {
    A* passed = dresidual == nullptr ? nullptr : rows.residual.place(dresidual + first);
    kernels.add_gradients(columns.passed(rows, in, of, first, count), passed, count, lines.width, of_columns);
    if (dresidual != nullptr) rows.residual.write(dresidual + first, count);
  });
  for (std::int64_t channel = 0; channel < in.channels; ++channel) {
    double& product = sums[in.channels + channel];
    product = norm.rstd[channel] * (product - remainder<A>(norm.mean[channel]) * sums[channel]);
  }
}

template <typename T>
void channel_gradients(const ChannelRows<T>& in, const ChannelNorm<T>& norm, const ChannelGradients<T>& pass) {
  using A = Accumulate<T>;
  const Lines lines(in);
  const NormColumns<A> columns(lines, norm);
  const auto slope = [&](std::int64_t channel) { return -norm.rstd[channel] * norm.rstd[channel] * pass.average_gn[channel]; };
  const auto x_scale = lines.columns<A>(slope);
  const auto shift = lines.columns<A>([&](std::int64_t channel) {
    return -norm.rstd[channel] * pass.average_g[channel] - slope(channel) * remainder<A>(norm.mean[channel]);
  });
  const auto& kernels = channel_kernels().of<A>();
  parallel_lines<T>(lines, [&](PieceRows<T>& rows, std::int64_t first, std::int64_t count) {
    if (pass.accumulate_dx) rows.dx.read(pass.dx + first, count);
    kernels.gradients({.of = columns.passed(rows, in, pass.of, first, count),
                       .x_scale = x_scale.data(),
                       .shift = shift.data(),
                       .dx = rows.dx.place(pass.dx + first),
                       .accumulate_dx = pass.accumulate_dx},
                      count, lines.width);
    rows.dx.write(pass.dx + first, count);
  });
}

TRIREME_INSTANTIATE(FLOATS, sum_channels)
TRIREME_INSTANTIATE(FLOATS, normalize_channels)
TRIREME_INSTANTIATE(FLOATS, sum_channel_gradients)
TRIREME_INSTANTIATE(FLOATS, channel_gradients)

}  // namespace trireme::ops
