#include "ops/convolution/grouped_kernels.hpp"

#include <utility>

#include "ops/base/vector.hpp"

namespace trireme::ops::TRIREME_ISA {
namespace {

// Aligned, unlike Vector: arrays of it are arguments of templates here, for which clang assumes the alignment.
typedef float V __attribute__((vector_size(vector_bytes), may_alias));
constexpr int width = lanes<float>;

V load_first(const float* from, std::int64_t count) {
  alignas(V) float all[width] = {};
  for (std::int64_t lane = 0; lane < count; ++lane) all[lane] = from[lane];
  return load<V>(all);
}

void store_first(float* to, V vector, std::int64_t count) {
  alignas(V) float all[width];
  store(all, vector);
  for (std::int64_t lane = 0; lane < count; ++lane) to[lane] = all[lane];
}

// Channel v of each lane's group.
template <int group, int v, int... lane>
V channel_of_group(V pixel, std::integer_sequence<int, lane...>) {
  return __builtin_shufflevector(pixel, pixel, (lane / group * group + v)...);
}

template <int group, int... v>
void spread_pixels(const SpreadPixels& pixels, std::integer_sequence<int, v...>) {
  constexpr int of_pixel = group * width;
  for (std::int64_t channel = 0; channel < pixels.channels; channel += width) {
    float* const zeros = pixels.to + channel / width * pixels.block_step;
    float* const more_zeros = zeros + (pixels.zeros_before + pixels.pixels) * of_pixel;
    for (std::int64_t i = 0; i < pixels.zeros_before * of_pixel; i += width) store(zeros + i, V{});
    for (std::int64_t i = 0; i < pixels.zeros_after * of_pixel; i += width) store(more_zeros + i, V{});
  }
  for (std::int64_t i = 0; i < pixels.pixels; ++i) {
    const float* from = pixels.from + i * pixels.step;
    float* to = pixels.to + (pixels.zeros_before + i) * of_pixel;
    const auto spread_to_next = [&](V pixel) {
      (store(to + v * width, channel_of_group<group, v>(pixel, std::make_integer_sequence<int, width>())), ...);
      to += pixels.block_step;
    };
    std::int64_t channel = 0;
    for (; channel + width <= pixels.channels; channel += width) spread_to_next(load<V>(from + channel));
    if (channel < pixels.channels) spread_to_next(load_first(from + channel, pixels.channels - channel));
  }
}

void spread(const SpreadPixels& pixels) {
  if (pixels.group == 1) return spread_pixels<1>(pixels, std::make_integer_sequence<int, 1>());
  if (pixels.group == 2) return spread_pixels<2>(pixels, std::make_integer_sequence<int, 2>());
  spread_pixels<4>(pixels, std::make_integer_sequence<int, 4>());
}

constexpr int most_columns = num_registers == 32 ? 14 : 12;  // the sums of so many columns fit into registers

// Results of one block.
struct Strip {
  const float* pixels;
  const float* weights;
  const float* bias;
  float* y;
  std::int64_t channels;
};

// Computes `columns` results. known_step is the step of the rows, in vectors, or 0 for a step without an instance.
template <int known_step, int columns>
void convolve_columns(const GroupedRows& rows, const Strip& strip) {
  const std::int64_t step = known_step > 0 ? known_step * width : rows.step;
  const V bias = strip.bias == nullptr ? V{} : load<V>(strip.bias);
  V sums[columns];
#pragma GCC unroll 16
  for (int column = 0; column < columns; ++column) sums[column] = bias;
  for (std::int64_t tap = 0; tap < rows.num_taps; ++tap) {
    const float* pixel = strip.pixels + rows.offsets[tap];
    const V weight = load<V>(strip.weights + tap * width);
#pragma GCC unroll 16
    for (int column = 0; column < columns; ++column) sums[column] += weight * load<V>(pixel + column * step);
  }
  float* y = strip.y;
#pragma GCC unroll 16
  for (int column = 0; column < columns; ++column, y += rows.y_step) {
    if (strip.channels >= width) {
      store(y, sums[column]);
    } else {
      store_first(y, sums[column], strip.channels);
    }
  }
}

// Computes each row of a block in strips of nearly the same length.
template <int known_step, int most, int... less>
void convolve_strips(const GroupedRows& rows, std::integer_sequence<int, less...>) {
  using Convolve = void (*)(const GroupedRows&, const Strip&);
  static constexpr Convolve of_length[] = {convolve_columns<known_step, less + 1>...};
  const std::int64_t strips = (rows.columns + most - 1) / most;
  for (std::int64_t channel = 0; channel < rows.channels; channel += width) {
    const std::int64_t block = channel / width;
    for (std::int64_t row = 0; row < rows.rows; ++row) {
      std::int64_t first = 0;
      for (std::int64_t strip = 0; strip < strips; ++strip) {
        const std::int64_t end = rows.columns * (strip + 1) / strips;
        of_length[end - first - 1](rows,
                                   {.pixels = rows.pixels + block * rows.block_step + row * rows.row_step + first * rows.step,
                                    .weights = rows.weights + block * rows.weights_block_step,
                                    .bias = rows.bias == nullptr ? nullptr : rows.bias + channel,
                                    .y = rows.y + row * rows.y_row_step + first * rows.y_step + channel,
                                    .channels = rows.channels - channel});
        first = end;
      }
    }
  }
}

void convolve(const GroupedRows& rows) {
  constexpr auto all = std::make_integer_sequence<int, most_columns>();
  if (rows.step == width) return convolve_strips<1, most_columns>(rows, all);
  if (rows.step == 2 * width) return convolve_strips<2, most_columns>(rows, all);
  if (rows.step == 4 * width) return convolve_strips<4, most_columns>(rows, all);
  convolve_strips<0, 4>(rows, std::make_integer_sequence<int, 4>());
}

template <int taps>
void add_gradient_of(const GroupedGradient& gradient) {
  V sums[taps] = {};
  const float* pixels[taps];
#pragma GCC unroll 16
  for (int tap = 0; tap < taps; ++tap) pixels[tap] = gradient.taps[tap];
  const float* dy = gradient.dy;
  for (std::int64_t row = 0; row < gradient.rows; ++row) {
    std::int64_t at = row * gradient.row_step;
    for (std::int64_t column = 0; column < gradient.columns; ++column) {
      const V of_column = load<V>(dy);
#pragma GCC unroll 16
      for (int tap = 0; tap < taps; ++tap) sums[tap] += of_column * load<V>(pixels[tap] + at);
      at += gradient.step;
      dy += width;
    }
  }
#pragma GCC unroll 16
  for (int tap = 0; tap < taps; ++tap) {
    float* const sum = gradient.sums + tap * width;
    store(sum, load<V>(sum) + sums[tap]);
  }
}

template <int... less>
void add_gradient_to(const GroupedGradient& gradient, std::integer_sequence<int, less...>) {
  using Add = void (*)(const GroupedGradient&);
  static constexpr Add of_taps[] = {add_gradient_of<less + 1>...};
  of_taps[gradient.num_taps - 1](gradient);
}

void add_gradient(const GroupedGradient& gradient) {
  add_gradient_to(gradient, std::make_integer_sequence<int, most_gradient_taps>());
}

}  // namespace

const GroupedKernels grouped_kernels{
    .lanes = width,
    .spread = spread,
    .convolve = convolve,
    .add_gradient = add_gradient,
};

}  // namespace trireme::ops::TRIREME_ISA
